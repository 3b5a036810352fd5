/**
 * NCCL's tables for GIN and RMA ({@link org.millrace.plugin.gin.GinPlugin}). This package allocates the memory that
 * kernels and {@code org.millrace.gin} share. Ranks of one host share a part of it. {@code org.millrace.gin} executes
 * the descriptors.
 */
@NullMarked
package org.millrace.plugin.gin;

import org.jspecify.annotations.NullMarked;
