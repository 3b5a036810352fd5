/**
 * The device side of NCCL's protocol: what a kernel does to the memory that it shares with a proxy.
 *
 * <pre>
 *   stream      device, stream, event, kernel, launcher
 *   function    what a kernel's blocks do: one class an algorithm
 *   primitives  send, receive, reduce, copy: Simple, LL, LL128, user memory     work     plans, FIFO, the communicator
 *   channel     neighbours, ports                                               arithmetic
 * </pre>
 */
@NullMarked
package org.millrace.device;

import org.jspecify.annotations.NullMarked;
