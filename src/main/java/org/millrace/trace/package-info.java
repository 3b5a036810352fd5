/**
 * The trace that a process writes about its connections while it runs: counters, and the last steps of each connection.
 * Others read the file while the process runs, hangs, or is dead ({@code millrace ps}, {@code top}, {@code why},
 * {@code dump}).
 *
 * <p>
 * {@link org.millrace.trace.TraceLayout} is the format. {@link org.millrace.trace.ProcessTrace} creates the file and
 * writes its header. {@link org.millrace.trace.ConnectionTrace} and {@link org.millrace.trace.AgentTrace} are written
 * by the agent's thread, and {@link org.millrace.trace.CommunicatorTrace} under its lock. Other processes can write
 * arbitrary data. Readers therefore check every number before they use it as a count or a position, and make text safe
 * for a terminal.
 */
@NullMarked
package org.millrace.trace;

import org.jspecify.annotations.NullMarked;
