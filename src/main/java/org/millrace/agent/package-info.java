/**
 * How polling threads are run: an {@link org.millrace.agent.Agent} does a pass of work, a runner owns the thread, an
 * idle strategy decides what to do with none, by a named {@link org.millrace.agent.IdleProfile}. What other threads
 * want of an agent reaches it through a {@link org.millrace.agent.RequestQueue}, and which of its connections a pass
 * polls says a {@link org.millrace.agent.PollSchedule}. Nothing here knows what an agent does; it uses the JDK alone.
 */
@NullMarked
package org.millrace.agent;

import org.jspecify.annotations.NullMarked;
