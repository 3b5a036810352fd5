/**
 * Runs polling threads. An {@link org.millrace.agent.Agent} does a pass of work, and an
 * {@link org.millrace.agent.AgentRunner} owns the thread. An {@link org.millrace.agent.IdleStrategy}, created by an
 * {@link org.millrace.agent.IdleProfile}, decides the thread's action when there is no work.
 *
 * <p>
 * If cores are scarce, an agent's own thread competes for the core with the threads that wait for the agent. A
 * {@link org.millrace.agent.HelpedAgent} then lets one waiting thread run the agent's passes.
 * {@link org.millrace.agent.PollingThreads} limits the number of polling threads. A {@link org.millrace.agent.Sleeper}
 * lets the other threads sleep. The commands and requests that other threads send to an agent arrive through a
 * {@link org.millrace.agent.RequestQueue}. A {@link org.millrace.agent.PollSchedule} selects the connections that a
 * pass polls. This package does not depend on the work of its agents.
 */
@NullMarked
package org.millrace.agent;

import org.jspecify.annotations.NullMarked;
