package com.example.millrace.experts;

/** Batches of tokens that travel to experts and back. Used by one thread. */
public interface TokenExchange extends AutoCloseable {

    /**
     * Dispatches this rank's tokens, runs the experts on the received tokens, and combines the results. All ranks call
     * it for the same batch.
     *
     * @return number of tokens that this rank's experts received
     * @throws org.millrace.MillraceException if a token is wrong, or if the communicator failed or stalls
     */
    long run(long batch);

    /** Frees the resources. No rank may move tokens any longer. */
    @Override
    default void close() {
        // most exchanges have no resources besides their window
    }
}
