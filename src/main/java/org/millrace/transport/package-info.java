/**
 * How two ranks' devices come to share a connection: a transport is chosen for each peer, and both ends are taken
 * through the same phases. Which transports there are is not known here: {@link org.millrace.engine} and
 * {@link org.millrace.engine} have ours, others are found as services of {@link org.millrace.transport.Transport}.
 */
@NullMarked
package org.millrace.transport;

import org.jspecify.annotations.NullMarked;
