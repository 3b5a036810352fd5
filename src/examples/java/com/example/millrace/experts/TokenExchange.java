package com.example.millrace.experts;

/** Batches of tokens that go to experts and come back. Used by one thread. */
public interface TokenExchange extends AutoCloseable {

    /**
     * Dispatches this rank's tokens, runs the experts on what came, and combines. All ranks call it for the same batch.
     *
     * @return how many tokens came to this rank's experts
     * @throws org.millrace.MillraceException if a token is not what it should be, or the communicator failed or stands
     *                                        still
     */
    long run(long batch);

    /** No rank moves a token any more. */
    @Override
    default void close() {
        // most have nothing that ends before their window
    }
}
