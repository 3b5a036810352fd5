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
 * {@link org.millrace.cuda.NativeLibrary} and {@link org.millrace.cuda.NativeHandle} serve every binding of the
 * project.
 */
package org.millrace.cuda;
