/**
 * {@code millrace perf}: measures collectives and checks their results, in the form that NVIDIA's nccl-tests made
 * known.
 *
 * <p>
 * A {@link org.millrace.cli.perf.PerfPlan} says what to measure. One {@link org.millrace.cli.perf.PerfWorker} for each
 * rank carries it out and reports {@link org.millrace.cli.perf.PerfEvent}s, which
 * {@link org.millrace.cli.perf.PerfResults} puts together and {@link org.millrace.cli.perf.PerfTable} prints.
 */
@NullMarked
package org.millrace.cli.perf;

import org.jspecify.annotations.NullMarked;
