/**
 * NCCL's proxy: moves steps between the slots that a device reads and writes and the frames that a network carries.
 *
 * <p>
 * A device and its proxy share {@code ncclSendMem}, {@code ncclRecvMem} and a ring of
 * {@link org.millrace.abi.ConnectionLayout#SLOTS} slots per protocol. On the sending side the device says a size in
 * {@code connFifo}, fills the slot and moves {@code tail}; {@link org.millrace.proxy.SendProxy} sends it and moves
 * {@code head}. On the receiving side {@link org.millrace.proxy.ReceiveProxy} fills a slot and moves {@code tail}; the
 * device consumes it and moves {@code head}.
 *
 * <p>
 * A step source says what the next step is, by the operations that an engine announced or by the shared memory alone;
 * {@link org.millrace.proxy.UnpackReceiveSource} stands before one where a kernel gathers its slices itself, by NCCL's
 * network device UNPACK, version 7. Connections to be served are given to a {@link org.millrace.proxy.ProxyAgent}. It
 * uses the descriptors of {@code abi} and the frames of {@code net}; nothing here knows of sockets, nor of what an
 * operation computes.
 */
@NullMarked
package org.millrace.proxy;

import org.jspecify.annotations.NullMarked;
