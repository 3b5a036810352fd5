/**
 * The network that is chosen for each pair of processes: shared memory where both are on one host, of one user and see
 * one shared directory; otherwise UCX where both have a card with RDMA, and TCP.
 *
 * <p>
 * It is built on these networks, and none knows of it: a listener is a listener of each, and a connection is one of
 * them. The side that connects decides, as it alone can see whether the listener's socket is there; the side that
 * accepts expects the connection on all.
 */
@NullMarked
package org.millrace.net.auto;

import org.jspecify.annotations.NullMarked;
