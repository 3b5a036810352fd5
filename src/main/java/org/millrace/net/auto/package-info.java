/**
 * The network that is chosen for each pair of processes: shared memory where both are on one host, of one user and see
 * one shared directory, TCP otherwise.
 *
 * <p>
 * It is built on the two networks, and neither knows of it: a listener is a listener of each, and a connection is one
 * of either. The side that connects decides, as it alone can see whether the listener's socket is there; the side that
 * accepts expects the connection on both.
 */
@NullMarked
package org.millrace.net.auto;

import org.jspecify.annotations.NullMarked;
