/**
 * Functions of the CUDA driver, for memory of other processes and for the copies that GIN requests.
 *
 * <p>
 * {@link org.millrace.cuda.driver.CudaDriver} has the functions, and {@link org.millrace.cuda.driver.ForeignMemory}
 * maps memory of another process. {@link org.millrace.cuda.driver.CopyQueue} makes copies. It uses a copy engine. For
 * small copies it can use a kernel that stays on the GPU ({@code src/main/cuda/copy.cu}).
 */
@NullMarked
package org.millrace.cuda.driver;

import org.jspecify.annotations.NullMarked;
