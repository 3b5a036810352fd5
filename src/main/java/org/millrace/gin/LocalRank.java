package org.millrace.gin;

/** State of this rank of a communicator that all its paths share. */
record LocalRank(int rank, int ranks, GinOptions options, Windows windows, GinContexts contexts) {
}
