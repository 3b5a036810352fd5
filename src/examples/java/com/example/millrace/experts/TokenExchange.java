package com.example.millrace.experts;

/** Batches of tokens that go to experts and come back. Used by one thread. */
@FunctionalInterface
public interface TokenExchange {

    /**
     * Dispatches this rank's tokens, runs the experts on what came, and combines. All ranks call it for the same batch.
     *
     * @return how many tokens came to this rank's experts
     * @throws org.millrace.MillraceException if a token is not what it should be, or the communicator failed or stands
     *                                        still
     */
    long run(long batch);
}
