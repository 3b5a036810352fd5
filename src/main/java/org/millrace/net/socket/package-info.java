/**
 * Frames over TCP.
 *
 * <p>
 * A connection is a numbered sequence of frames over streams that may be lost and restored: one stream, or several on
 * each of several rails. {@link org.millrace.net.socket.SocketSender} and {@code SocketReceiver} are its ends.
 * {@code SocketConnect}, {@code SocketListener} and {@code SocketAccept} establish it, and {@code Reconnector} restores
 * lost streams.
 *
 * <p>
 * All calls on the frame path pass one buffer to {@code java.nio}. A gather write of header and payload would save a
 * call on a large frame. But over memory outside {@code java.nio} it allocates two objects per buffer (JDK 25,
 * {@code sun.nio.ch.IOUtil}: a releaser for each buffer with a memory session, including the global one). Instead
 * headers, small payloads and the beginnings of large ones are staged in one direct buffer. Any number of small frames
 * is then one write and one read, and no header is a separate packet. The rest of a large payload moves directly from
 * and to its memory.
 *
 * <p>
 * A thread that polls several connections polls all their streams by one call in a pass, and reads the ready ones
 * ({@code StreamInput.ReadPoll}). A thread that polls a single busy connection reads it in every pass. This has the
 * same result with one call less.
 */
@NullMarked
package org.millrace.net.socket;

import org.jspecify.annotations.NullMarked;
