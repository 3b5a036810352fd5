/**
 * The CUDA runtime as a Java library: devices, streams, events, graphs, memory and kernels, based on
 * {@code org.millrace.ffi.cudart}.
 *
 * <p>
 * {@link org.millrace.cuda.CudaRuntime} is the entry point. A failed call of the runtime throws a
 * {@link org.millrace.cuda.CudaException} that names the function, the error and, if known, a remedy. Objects that own
 * CUDA resources are closed once, from any thread. The use of a closed object throws an
 * {@link java.lang.IllegalStateException} and never crashes the process.
 *
 * <p>
 * {@link org.millrace.cuda.NativeHandle} is the basis of CUDA's and NCCL's objects. The package does not depend on
 * communicators.
 */
@NullMarked
package org.millrace.cuda;

import org.jspecify.annotations.NullMarked;
