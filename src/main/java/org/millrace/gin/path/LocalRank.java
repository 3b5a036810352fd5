package org.millrace.gin.path;

import org.millrace.gin.GinOptions;
import org.millrace.gin.queue.GinContexts;
import org.millrace.gin.window.Windows;

/** One rank of a communicator, as all its paths see it. */
public record LocalRank(int rank, int ranks, GinOptions options, Windows windows, GinContexts contexts) {
}
