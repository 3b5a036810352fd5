/**
 * NCCL's tables for GIN and RMA ({@link org.millrace.plugin.gin.GinPlugin}). This package allocates the memory that
 * kernels and {@code org.millrace.gin} share, and the memory for signals and staged bytes that ranks of one host share.
 * {@code org.millrace.gin} executes the descriptors.
 */
@NullMarked
package org.millrace.plugin.gin;

import org.jspecify.annotations.NullMarked;
