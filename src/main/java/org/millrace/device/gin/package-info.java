/**
 * The device side of GIN on the emulated device: the operations of a kernel with {@code ncclGin}, in Java. Blocks are
 * threads, or state machines that use the {@code try} methods.
 *
 * <p>
 * {@link org.millrace.device.gin.GinDeviceCommunicator} corresponds to {@code ncclDevComm}. Each block creates its own
 * {@link org.millrace.device.gin.HostGin}, which corresponds to {@code ncclGin}, for its context. All blocks share the
 * context's queues with the agent of {@code org.millrace.gin}, through the same memory as on a GPU.
 */
@NullMarked
package org.millrace.device.gin;

import org.jspecify.annotations.NullMarked;
