/**
 * Ways to connect two ranks' devices. A transport is chosen for each peer, and both ends pass through the same phases.
 * This package knows no implementation. {@link org.millrace.engine} contains Millrace's own transports. Others are
 * found as services of {@link org.millrace.transport.Transport}.
 */
@NullMarked
package org.millrace.transport;

import org.jspecify.annotations.NullMarked;
