/**
 * GPU-initiated networking by proxy: kernels post descriptors to queues, and an agent carries them out. Puts, gets and
 * signals between windows, which are memory that all ranks of a communicator registered. This package has only what its
 * packages share; each of them uses those above it.
 *
 * <pre>
 *   window    memory of a rank that peers write and read, and how bytes get out of it and into it
 *   queue     contexts: queues of descriptors, counters, signals
 *   path      the ways from a queue to a peer's memory, and the order between them
 *   agent     the communicator, its connections, and the thread that serves it
 *   cuda      windows in a GPU's memory
 * </pre>
 *
 * <p>
 * Descriptors of a queue are carried out in order. A signal becomes visible after the put it belongs to, and after all
 * earlier puts of its context to its peer.
 */
@NullMarked
package org.millrace.gin;

import org.jspecify.annotations.NullMarked;
