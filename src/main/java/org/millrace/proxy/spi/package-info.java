/**
 * Contract between the proxies and their callers, for implementations of transports. An engine announces a
 * {@link org.millrace.proxy.spi.ProxyOp} for each operation on a connection. An agent of {@code org.millrace.proxy}
 * calls each {@link org.millrace.proxy.spi.ProxyConnection} until the connection is removed or fails.
 */
@NullMarked
package org.millrace.proxy.spi;

import org.jspecify.annotations.NullMarked;
