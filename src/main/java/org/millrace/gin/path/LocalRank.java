package org.millrace.gin.path;

import org.millrace.gin.GinContexts;
import org.millrace.gin.GinOptions;
import org.millrace.gin.Windows;

/** One rank of a communicator, as all its paths see it. */
record LocalRank(int rank, int ranks, GinOptions options, Windows windows, GinContexts contexts) {
}
