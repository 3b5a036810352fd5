/**
 * Ways to connect two ranks' devices. A rank chooses a transport for each peer, and both ends of a connection pass
 * through the same phases. This package contains no implementation. {@link org.millrace.engine} contains Millrace's own
 * transports. Others are found as services of {@link org.millrace.transport.Transport}. An implementation uses the
 * memory of {@code org.millrace.abi} and the contract of {@code org.millrace.proxy.spi}.
 */
@NullMarked
package org.millrace.transport;

import org.jspecify.annotations.NullMarked;
