/**
 * Frames over memory that two processes of one host share: one ring per connection, in a file that both map and no
 * other process sees.
 *
 * <p>
 * The entry point is this package. Below it, each package using only those behind it: {@code handshake} finds and makes
 * connections, {@code ring} moves their frames, {@code peer} reads another process's memory, {@code file} has the files
 * and processes behind them.
 *
 * <p>
 * A connection is set up through a Unix-domain socket, over which the connecting side names the ring that it made. Once
 * both sides have mapped the ring its file is unlinked; the socket stays open as the sign that the peer lives. All
 * frames, and the shutdown message at their end, go through the ring ({@link org.millrace.net.shm.RingLayout}), each
 * side of which has one thread at a time and takes no lock.
 */
@NullMarked
package org.millrace.net.shm;

import org.jspecify.annotations.NullMarked;
