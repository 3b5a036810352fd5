/**
 * Frames over TCP.
 *
 * <p>
 * A connection is a numbered sequence of frames over streams that may be lost and restored. It has one stream, or
 * several streams on one or more rails. {@link org.millrace.net.socket.SocketSender} and {@code SocketReceiver} are its
 * two ends. {@code SocketConnect}, {@code SocketListener} and {@code SocketAccept} establish a connection, and
 * {@code Reconnector} restores lost streams.
 *
 * <p>
 * A read or write of frames passes a single buffer to {@code java.nio}. A gather write passes several buffers, for
 * instance a header and its payload. A gather write would save one call for a large frame. However, a gather write
 * would allocate two objects for each buffer over a {@code MemorySegment}, see {@code sun.nio.ch.IOUtil} of JDK 25.
 * Instead, headers, small payloads and the beginnings of large payloads are staged in one direct buffer. One write and
 * one read are therefore enough for any number of small frames, and no header is a separate packet. The rest of a large
 * payload is written from its memory, and read into its memory, without a copy.
 *
 * <p>
 * A thread that polls several connections polls all their streams by one system call in each pass, and reads the
 * streams that have data ({@code StreamInput.ReadPoll}). A thread that polls a single busy connection reads its stream
 * in every pass. In this case a poll would have no advantage, and would cost one more call.
 */
@NullMarked
package org.millrace.net.socket;

import org.jspecify.annotations.NullMarked;
