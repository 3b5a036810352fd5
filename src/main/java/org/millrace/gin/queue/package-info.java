/**
 * Contexts as the agent sees them: a queue of descriptors for each peer, decoded and checked here, counters, signals,
 * and the memory through which ranks of one host see each other's signals. Does not know how a descriptor is carried
 * out.
 */
@NullMarked
package org.millrace.gin.queue;

import org.jspecify.annotations.NullMarked;
