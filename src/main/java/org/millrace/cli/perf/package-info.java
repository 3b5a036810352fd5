/**
 * {@code millrace perf}: measures collectives and checks their results, in the form that NVIDIA's nccl-tests made
 * known.
 *
 * <p>
 * A {@link org.millrace.cli.perf.PerfPlan} says what to measure. One {@link org.millrace.cli.perf.PerfWorker} for each
 * rank, a thread of this process or a process of its own, carries it out and reports
 * {@link org.millrace.cli.perf.RankEvent}s; {@link org.millrace.cli.perf.PerfRun} collects them into
 * {@link org.millrace.cli.perf.PerfResults}.
 */
package org.millrace.cli.perf;
