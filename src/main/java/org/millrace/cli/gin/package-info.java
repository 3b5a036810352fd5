/**
 * {@code millrace gin} measures GIN: puts by the emulated device, or by kernels that are compiled from {@code
 * src/main/cuda/gin.cu}.
 */
@NullMarked
package org.millrace.cli.gin;

import org.jspecify.annotations.NullMarked;
