/**
 * Millrace's communicator on the emulated device: its API implementation, its parts, and the threads that run them.
 * Ranks meet in {@code bootstrap}. A connector is a rank's end of a connection to a peer, and operations may use it
 * before it is connected. A separate thread connects the connectors by means of transports. A connected connector
 * passes its slots and counters to the device as a port. The connector also passes to the proxies the operations that
 * were announced before the connection was made. Only {@code org.millrace.device} implements the kernels, and
 * {@code org.millrace.device} does not depend on this package.
 */
@NullMarked
package org.millrace.engine;

import org.jspecify.annotations.NullMarked;
