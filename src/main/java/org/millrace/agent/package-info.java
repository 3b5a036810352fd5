/**
 * How polling threads are run: an {@link org.millrace.agent.Agent} does a pass of work, a runner owns the thread, and
 * an idle strategy, named by an {@link org.millrace.agent.IdleProfile}, decides what the thread does when there is no
 * work. Where a thread of its own would only take the core from those who wait for it, a
 * {@link org.millrace.agent.HelpedAgent} lets them run its passes. What other threads want of an agent reaches it
 * through a {@link org.millrace.agent.RequestQueue}; a {@link org.millrace.agent.PollSchedule} says which of an agent's
 * connections a pass polls. Nothing here knows what an agent does.
 */
@NullMarked
package org.millrace.agent;

import org.jspecify.annotations.NullMarked;
