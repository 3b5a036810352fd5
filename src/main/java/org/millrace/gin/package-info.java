/**
 * GPU-initiated networking by proxy: kernels post descriptors to queues, and an agent carries them out. Puts, gets and
 * signals between windows, which are memory that all ranks of a communicator registered.
 *
 * <p>
 * A {@link org.millrace.gin.GinCommunicator} has a connection to each peer, windows, and contexts with a queue for each
 * peer. Descriptors of a queue are carried out in order. A signal becomes visible after the put it belongs to, and
 * after all earlier puts of its context to its peer. The memory of a window is behind
 * {@link org.millrace.gin.WindowMemory}, so that it may be a GPU's.
 */
package org.millrace.gin;
