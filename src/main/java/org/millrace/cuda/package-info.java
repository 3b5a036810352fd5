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
 * {@link org.millrace.cuda.CopyQueue} makes the copies that GIN asks for: by a copy engine, or by a kernel that stays
 * for small ones ({@code src/main/cuda/copy.cu}). {@link org.millrace.cuda.NativeHandle} is what CUDA's and NCCL's
 * objects are made of. Nothing here knows a communicator.
 */
@NullMarked
package org.millrace.cuda;

import org.jspecify.annotations.NullMarked;
