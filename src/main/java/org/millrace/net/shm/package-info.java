/**
 * Frames over memory that two processes of one host share: one ring per connection, in a file that both map and no
 * other process opens.
 *
 * <p>
 * {@code ShmNetwork} is the entry point. {@code ShmConnect} and {@code ShmListener} establish connections, and
 * {@code ShmSender} and {@code ShmReceiver} are their ends. {@code RingSide} moves frames, {@code ProcessReader} reads
 * another process's memory, and {@code SharedFile}, {@code SealedFile} and {@code SharedMemory} own the files.
 * {@code Doorbell} wakes sleeping ranks.
 *
 * <p>
 * A connection is established through a Unix-domain socket, over which the connecting side names its ring. Once both
 * sides have mapped the ring, its file is unlinked. The socket stays open as the sign that the peer is alive. All
 * frames, and the shutdown message at their end, pass the ring ({@link org.millrace.net.shm.RingLayout}). Each side has
 * one thread at a time and takes no lock.
 */
@NullMarked
package org.millrace.net.shm;

import org.jspecify.annotations.NullMarked;
