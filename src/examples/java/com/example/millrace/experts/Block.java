package com.example.millrace.experts;

/** One block of a kernel. It never waits, so that one thread runs all blocks of a rank in turn. */
interface Block {

    /** Does the work that needs no wait for a peer. Returns the number of tokens that moved. */
    int progress();

    boolean done();

    /** Returns the condition that a stalled block waits for. */
    String waitingFor();
}
