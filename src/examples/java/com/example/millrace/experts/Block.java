package com.example.millrace.experts;

/** One block of a kernel. It never waits, so that one thread runs all blocks of a rank in turn. */
interface Block {

    /** Does what can be done without waiting for a peer; returns how many tokens moved. */
    int progress();

    boolean done();

    /** What a block that does not get on waits for. */
    String waitingFor();
}
