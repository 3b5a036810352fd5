/**
 * NCCL's tables for GIN and RMA ({@link org.millrace.plugin.gin.GinPlugin}). This package allocates the memory that
 * kernels and {@code org.millrace.gin} share. For signals and staged bytes, it also allocates memory that ranks of one
 * host share. {@code org.millrace.gin} executes the descriptors.
 */
@NullMarked
package org.millrace.plugin.gin;

import org.jspecify.annotations.NullMarked;
