/**
 * Frames over UCX: whatever transport it finds between two processes, cards with RDMA among them.
 *
 * <p>
 * The entry point is this package. Below it, each package using only those before it: {@code library} has what was
 * found of UCX, {@code worker} what a polling thread drives, {@code frames} the two ends of a connection. Peers find
 * each other over TCP, as those of the socket network do.
 */
@NullMarked
package org.millrace.net.ucx;

import org.jspecify.annotations.NullMarked;
