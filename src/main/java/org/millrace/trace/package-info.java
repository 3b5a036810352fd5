/**
 * What a process writes down about its connections while it runs: counters, and the last steps of each, in a file that
 * others read while it runs, hangs, or is dead ({@code millrace ps}, {@code top}, {@code why}, {@code dump}).
 *
 * <p>
 * {@link org.millrace.trace.TraceLayout} is the format. {@link org.millrace.trace.ProcessTrace} is the file's writer;
 * every other writer here has one thread: {@link org.millrace.trace.ConnectionTrace} and
 * {@link org.millrace.trace.AgentTrace} that of the agent. Other processes can write what they like: readers check
 * every number before it counts or places anything, and make text fit for a terminal.
 */
@NullMarked
package org.millrace.trace;

import org.jspecify.annotations.NullMarked;
