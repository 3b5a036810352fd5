/**
 * How polling threads are run: an {@link org.millrace.agent.Agent} does a pass of work, a runner owns the thread, and
 * an idle strategy, named by an {@link org.millrace.agent.IdleProfile}, decides what the thread does when there is no
 * work. Where a thread of its own would only take the core from those who wait for it, a
 * {@link org.millrace.agent.HelpedAgent} lets one of them run its passes. {@link org.millrace.agent.PollingThreads}
 * limits the threads that poll, and a {@link org.millrace.agent.Sleeper} is the way in which the others sleep. What
 * other threads want of an agent reaches it through a {@link org.millrace.agent.RequestQueue}; a
 * {@link org.millrace.agent.PollSchedule} says which of an agent's connections a pass polls. Nothing here knows what an
 * agent does.
 */
@NullMarked
package org.millrace.agent;

import org.jspecify.annotations.NullMarked;
