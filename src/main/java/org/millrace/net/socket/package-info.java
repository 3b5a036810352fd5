/**
 * Frames over TCP.
 *
 * <p>
 * A connection is a numbered sequence of frames over streams that come and go: one stream, or several on each of
 * several rails. {@link org.millrace.net.socket.SocketSender} and {@code SocketReceiver} are its ends;
 * {@code SocketConnect}, {@code SocketListener} and {@code SocketAccept} make it, and {@code Reconnector} makes lost
 * streams again.
 *
 * <p>
 * All calls on the frame path hand {@code java.nio} one buffer at a time. A gather write of header and payload would
 * save a call on a large frame, but over memory that is not {@code java.nio}'s own it allocates two objects per buffer
 * (JDK 25, {@code sun.nio.ch.IOUtil}: a releaser for each buffer that has a memory session, the global one included).
 * Instead headers, small payloads and the beginnings of large ones are staged in one direct buffer, so that any number
 * of small frames is one write and one read, no header is a packet of its own, and what is left of a large payload
 * moves straight from and to its memory.
 *
 * <p>
 * A thread that polls several connections looks at all their streams by one call a pass, and reads those that have
 * something ({@code StreamInput.ReadPoll}); one that polls a single busy connection reads it in every pass, which tells
 * as much in one call less.
 */
@NullMarked
package org.millrace.net.socket;

import org.jspecify.annotations.NullMarked;
