/**
 * The trace that a process writes about its connections while it runs: counters, and the last steps of each connection.
 * Other processes can read the trace while its process runs or hangs, and after its process has died
 * ({@code millrace ps}, {@code top}, {@code why}, {@code dump}).
 *
 * <p>
 * {@link org.millrace.trace.TraceLayout} is the format. {@link org.millrace.trace.ProcessTrace} creates the file and
 * writes its header. The agent's thread writes {@link org.millrace.trace.ConnectionTrace} and
 * {@link org.millrace.trace.AgentTrace}. {@link org.millrace.trace.CommunicatorTrace} is written under its own lock.
 * Another process of the user can write arbitrary data to a trace. Readers therefore check every number before they use
 * it as a count or a position, and make text safe for a terminal.
 */
@NullMarked
package org.millrace.trace;

import org.jspecify.annotations.NullMarked;
