/**
 * The CUDA runtime as a Java library: devices, streams, events, graphs, memory and kernels over
 * {@code org.millrace.ffi.cudart}.
 *
 * <p>
 * {@link org.millrace.cuda.CudaRuntime} is the entry point. Every failed call is a
 * {@link org.millrace.cuda.CudaException} that names the call, the error and, if known, a remedy. Objects that own CUDA
 * resources are closed once, from any thread. Using them afterwards throws an {@link java.lang.IllegalStateException}
 * and never crashes.
 *
 * <p>
 * {@link org.millrace.cuda.CopyQueue} makes the copies that GIN requests: through a copy engine, or through a kernel
 * that stays on the GPU for small ones ({@code src/main/cuda/copy.cu}). {@link org.millrace.cuda.NativeHandle} is the
 * basis of CUDA's and NCCL's objects. The package knows no communicator.
 */
@NullMarked
package org.millrace.cuda;

import org.jspecify.annotations.NullMarked;
