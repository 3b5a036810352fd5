/**
 * The {@link org.millrace.gin.agent.GinCommunicator}, the connections that it is made of, and the agent whose thread
 * serves communicators. Uses the other packages of GIN; what makes windows, contexts and networks is above.
 */
@NullMarked
package org.millrace.gin.agent;

import org.jspecify.annotations.NullMarked;
