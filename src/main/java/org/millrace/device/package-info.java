/**
 * The device side of NCCL's protocol: what a kernel does to the memory that it shares with a proxy.
 *
 * <pre>
 *   gin         the device side of GIN, and with it an exchange of experts
 *   stream      device, stream, event, kernel, launcher
 *   function    what a kernel's blocks do: one class for each operation and algorithm
 *   work        plans of kernels, the work FIFO, the communicator as kernels see it
 *   primitives  send, receive, reduce, copy: Simple, LL, LL128, user memory
 *   channel     neighbours, ports
 *   arithmetic  every element type and operator
 * </pre>
 *
 * <p>
 * A package uses those named below it. None knows the engine: what is to be done reaches the device as data, in
 * {@code work} and in the memory of {@code abi}.
 */
@NullMarked
package org.millrace.device;

import org.jspecify.annotations.NullMarked;
