/**
 * The command {@code millrace}, its commands, and what several of them use: options, output, JSON, the words of a
 * failure, and JVMs that start others like them.
 *
 * <p>
 * {@code perf} measures collectives and checks their results, in the form of NVIDIA's nccl-tests: a {@link PerfPlan}
 * says what to measure, one {@link PerfWorker} for each rank carries it out and reports {@link PerfEvent}s, which
 * {@link PerfResults} puts together and {@link PerfTable} prints. {@code gin} does so for GPU-initiated networking.
 * {@code run} starts a command as ranks of this host. {@code doctor} says what can be used on this machine, each
 * {@link Check} about one thing, and changes nothing. {@code ps}, {@code top}, {@code dump}, {@code metrics},
 * {@code trace} and {@code why} read what {@code org.millrace.trace} wrote, and disturb nobody.
 */
@NullMarked
package org.millrace.cli;

import org.jspecify.annotations.NullMarked;
