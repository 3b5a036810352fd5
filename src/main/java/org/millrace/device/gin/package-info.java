/**
 * The device side of GIN on the emulated device: what a kernel does with {@code ncclGin}, in Java. Blocks are threads,
 * or state machines that try.
 *
 * <p>
 * {@link org.millrace.device.gin.GinDeviceCommunicator} is {@code ncclDevComm}; each block makes its own
 * {@link org.millrace.device.gin.HostGin}, which is {@code ncclGin}, for the context it works with. All share the
 * context's queues with {@code org.millrace.gin}'s agent, through the same memory as a GPU's would lie in.
 */
@NullMarked
package org.millrace.device.gin;

import org.jspecify.annotations.NullMarked;
