/**
 * Frames over UCX, which selects a transport between two processes, RDMA cards included.
 *
 * <p>
 * {@code UcxNetwork} is the entry point. {@code UcxLibrary} and {@code UcxContext} represent UCX in the process. Each
 * polling thread drives a {@code UcxWorker}. {@code UcxSender} and {@code UcxReceiver} are the two ends of a
 * connection, and {@code UcxFormat} defines their messages. Peers establish connections over another network, usually
 * TCP.
 */
@NullMarked
package org.millrace.net.ucx;

import org.jspecify.annotations.NullMarked;
