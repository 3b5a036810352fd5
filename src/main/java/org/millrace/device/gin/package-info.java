/**
 * The device side of GIN on the emulated device: the operations of a kernel with {@code ncclGin}, in Java. A block is a
 * thread, or a state machine that uses the {@code try} methods.
 *
 * <p>
 * {@link org.millrace.device.gin.GinDeviceCommunicator} corresponds to {@code ncclDevComm}.
 * {@link org.millrace.device.gin.HostGin} corresponds to {@code ncclGin}. Each block creates its own object for its
 * context. The blocks post descriptors into the queues of the context, and the agent of {@code org.millrace.gin} serves
 * the queues. The layout of their shared memory is the layout for a GPU.
 */
@NullMarked
package org.millrace.device.gin;

import org.jspecify.annotations.NullMarked;
