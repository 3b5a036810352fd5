/**
 * Frames over memory that two processes of one host share. Each connection has one ring, in a file that only these two
 * processes open and map.
 *
 * <p>
 * {@code ShmNetwork} is the entry point. {@code ShmConnect} and {@code ShmListener} establish connections. {@code
 * ShmSender} and {@code ShmReceiver} are the ends of a connection. {@code RingSide} reads and writes the frames in the
 * ring, {@code ProcessReader} reads another process's memory, and {@code SharedFile}, {@code SealedFile} and
 * {@code SharedMemory} own the files. {@code Doorbell} wakes sleeping ranks.
 *
 * <p>
 * A connection is established through a Unix-domain socket. The connecting side sends the name of its ring over the
 * socket. When both sides have mapped the ring, its file is deleted. The socket stays open: when the peer's process
 * ends, the operating system closes the peer's socket, and this side detects the close. All frames and the final
 * shutdown message pass through the ring ({@link org.millrace.net.shm.RingLayout}). Each side is used by one thread at
 * a time and takes no lock.
 */
@NullMarked
package org.millrace.net.shm;

import org.jspecify.annotations.NullMarked;
