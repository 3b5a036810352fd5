/**
 * Frames over TCP.
 *
 * <p>
 * Of the packages below, each uses only those named after it: {@code handshake} finds and makes connections;
 * {@code stripes} moves the frames of a connection over one rail, {@code rails} those of a connection over several;
 * {@code stream} is what both need of TCP streams and of registered memory.
 *
 * <p>
 * A connection over one rail is one or more TCP streams. Stream 0 carries all headers and the small payloads; a payload
 * of the stripe threshold or more is divided among all streams by a rule that both ends compute from its length alone
 * ({@link org.millrace.net.socket.Stripes}).
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
 * something ({@code stream.ReadPoll}); one that polls a single busy connection reads it in every pass, which tells as
 * much in one call less.
 */
@NullMarked
package org.millrace.net.socket;

import org.jspecify.annotations.NullMarked;
