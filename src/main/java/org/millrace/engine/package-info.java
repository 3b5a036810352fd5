/**
 * Millrace's communicator on the emulated device: its API implementation, its parts, and the threads that run them.
 * Ranks meet in {@code bootstrap}. A separate thread connects the connectors over transports. Operations may use a
 * connector before it is connected. When a connector is connected, it passes the connection's slots and counters to the
 * device as a port. It also passes the operations that were announced earlier to the connection's proxies. Only
 * {@code org.millrace.device} implements the kernels, and it does not depend on this package.
 */
@NullMarked
package org.millrace.engine;

import org.jspecify.annotations.NullMarked;
