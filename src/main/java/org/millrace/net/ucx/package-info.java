/**
 * Frames over UCX, which selects a transport between two processes. The transport may be an RDMA card.
 *
 * <p>
 * {@code UcxNetwork} is the entry point. {@code UcxLibrary} loads UCX, and {@code UcxContext} lists its transports.
 * Each polling thread drives a {@code UcxWorker}. {@code UcxSender} and {@code UcxReceiver} are the two ends of a
 * connection, and {@code UcxFormat} defines the layout of their messages. Connections are established over another
 * network, usually TCP.
 */
@NullMarked
package org.millrace.net.ucx;

import org.jspecify.annotations.NullMarked;
