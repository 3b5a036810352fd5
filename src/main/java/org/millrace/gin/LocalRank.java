package org.millrace.gin;

/** This rank's state in a communicator. All GIN paths of the communicator share this state. */
record LocalRank(int rank, int ranks, GinOptions options, Windows windows, GinContexts contexts) {
}
