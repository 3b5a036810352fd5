/**
 * How a connection through shared memory is found and made: addresses, the hello, the listener, and the two ends of a
 * connection in the making. It uses {@code ring} and {@code file}.
 */
@NullMarked
package org.millrace.net.shm.handshake;

import org.jspecify.annotations.NullMarked;
