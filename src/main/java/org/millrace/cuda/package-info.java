/**
 * The CUDA runtime as a Java library: devices, streams, events, graphs, memory and kernels over
 * {@code org.millrace.ffi.cudart}.
 *
 * <p>
 * {@link org.millrace.cuda.CudaRuntime} is the way in. Every failed call is a {@link org.millrace.cuda.CudaException}
 * that names the call, the error and, where it is known, what to do. Objects that own something of CUDA's are closed
 * once, from any thread; a use after that is an {@link java.lang.IllegalStateException}, never a crash.
 *
 * <p>
 * {@code copy} is the queue of copies that GIN uses. Nothing here knows a communicator.
 */
@NullMarked
package org.millrace.cuda;

import org.jspecify.annotations.NullMarked;
