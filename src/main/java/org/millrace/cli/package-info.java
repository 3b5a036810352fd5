/**
 * The command {@code millrace}, its subcommands, and their shared parts: options, output, JSON, texts of failures, and
 * the start of further JVMs.
 *
 * <p>
 * {@code perf} measures collectives and checks their results, in the form of NVIDIA's nccl-tests. A {@link PerfPlan}
 * defines the measurement. One {@link PerfWorker} for each rank executes the plan and reports {@link PerfEvent}s.
 * {@link PerfResults} combines the events and {@link PerfTable} prints them. {@code gin} measures GPU-initiated
 * networking in the same way. {@code run} starts a command as ranks of this host. {@code doctor} reports the usable
 * parts of this machine, with one {@link Check} for each, and changes nothing. {@code ps}, {@code top}, {@code dump},
 * {@code metrics}, {@code trace} and {@code why} read the traces of {@code org.millrace.trace}, and do not disturb the
 * traced processes. {@code record}, {@code replay} and {@code simulate} read the recordings of
 * {@code org.millrace.rehearsal}.
 */
@NullMarked
package org.millrace.cli;

import org.jspecify.annotations.NullMarked;
