/**
 * {@code millrace perf} measures collectives and checks their results, with the options and the table of NVIDIA's
 * nccl-tests. A {@link org.millrace.cli.perf.PerfPlan} defines the measurement. Each rank has a
 * {@link org.millrace.cli.perf.PerfWorker}, which carries out the measurement and reports
 * {@link org.millrace.cli.perf.PerfEvent}s. {@link org.millrace.cli.perf.PerfResults} combines the events, and
 * {@code PerfTable} prints the results. {@code millrace compare} compares saved results.
 */
@NullMarked
package org.millrace.cli.perf;

import org.jspecify.annotations.NullMarked;
