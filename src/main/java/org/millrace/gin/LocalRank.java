package org.millrace.gin;

/** State of this rank of a communicator that all GIN paths of the communicator share. */
record LocalRank(int rank, int ranks, GinOptions options, Windows windows, GinContexts contexts) {
}
