/**
 * Proxies that resemble NCCL's proxy: they move steps between the slots of a device and the frames of a network.
 *
 * <p>
 * A device and its proxy share {@code ncclSendMem}, {@code ncclRecvMem} and, for each protocol, a ring of
 * {@link org.millrace.abi.ConnectionLayout#SLOTS} slots. On the sending side the device stores a size in
 * {@code connFifo}, fills the slot and moves {@code tail}. {@link org.millrace.proxy.SendProxy} sends the slot's
 * content and moves {@code head}. On the receiving side {@link org.millrace.proxy.ReceiveProxy} fills a slot and moves
 * {@code tail}. The device reads the slot and moves {@code head}.
 *
 * <p>
 * A step source finds the next step, either from the operations that an engine announced or from the shared memory
 * alone. {@link org.millrace.proxy.UnpackReceiveSource} wraps a step source for kernels that gather their slices from
 * pages. These kernels use version 7 of NCCL's network device UNPACK. A {@link org.millrace.proxy.ProxyAgent} serves
 * the connections that are added to it. The package uses the layouts of {@code abi} and the frames of {@code net}. It
 * does not depend on sockets or on the computation of an operation.
 */
@NullMarked
package org.millrace.proxy;

import org.jspecify.annotations.NullMarked;
