/**
 * {@code millrace gin}, which measures GPU-initiated networking: puts of the emulated device, or of kernels that are
 * compiled from {@code src/main/cuda/gin.cu}.
 */
@NullMarked
package org.millrace.cli.gin;

import org.jspecify.annotations.NullMarked;
