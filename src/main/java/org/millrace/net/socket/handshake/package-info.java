/**
 * How a TCP connection is found and made: addresses, hellos, the listener, and the two ends of a connection in the
 * making.
 *
 * <p>
 * What comes in is hostile until it is checked. A connection that is made belongs to {@code stripes} or {@code rails},
 * and is not seen here again.
 */
@NullMarked
package org.millrace.net.socket.handshake;

import org.jspecify.annotations.NullMarked;
