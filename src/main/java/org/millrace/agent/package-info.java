/**
 * How polling threads are run: an {@link org.millrace.agent.Agent} does a pass of work, a runner owns the thread, an
 * idle strategy decides what to do with none.
 */
@NullMarked
package org.millrace.agent;

import org.jspecify.annotations.NullMarked;

