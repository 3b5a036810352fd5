/**
 * The network that chooses another network for each pair of processes. Shared memory is chosen if both processes are on
 * one host, belong to one user and see one shared directory. For other pairs, UCX is chosen if both processes have a
 * card with RDMA, and otherwise TCP.
 *
 * <p>
 * The package uses the networks for shared memory, UCX and TCP. These networks do not depend on the package. A listener
 * of this package consists of one listener for each of these networks. A connection uses one network. The connecting
 * process decides, because only it can check whether the socket of the shared-memory listener exists. The accepting
 * process expects the connection on all networks.
 */
@NullMarked
package org.millrace.net.auto;

import org.jspecify.annotations.NullMarked;
