/**
 * The network that chooses for each pair of processes. It takes shared memory if both processes are on one host, belong
 * to one user and see one shared directory. Otherwise it takes UCX if both have a card with RDMA, or TCP.
 *
 * <p>
 * It uses the other networks, and they do not know of it. A listener consists of a listener of each network, and a
 * connection uses one of them. The connecting side decides, because only it can see whether the listener's socket
 * exists. The accepting side expects the connection on all networks.
 */
@NullMarked
package org.millrace.net.auto;

import org.jspecify.annotations.NullMarked;
