package org.millrace.gin;

/** One rank of a communicator, as all its paths see it. */
record LocalRank(int rank, int ranks, GinOptions options, Windows windows, GinContexts contexts) {
}
