/**
 * NCCL's GIN and RMA tables: {@link org.millrace.plugin.gin.GinPlugin} has a method for each of their functions.
 *
 * <p>
 * It makes the memory that kernels and {@code org.millrace.gin} share, and has ranks of one host share some of it.
 * Descriptors are carried out by {@code org.millrace.gin}; while NCCL sets GIN up, the process sends some to itself
 * ({@link org.millrace.plugin.gin.GinWarmUp}).
 */
@NullMarked
package org.millrace.plugin.gin;

import org.jspecify.annotations.NullMarked;
