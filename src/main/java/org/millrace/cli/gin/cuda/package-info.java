/**
 * {@code millrace gin --device cuda}: the same patterns as kernels on GPUs, which are compiled where they run. Each
 * rank is a process with a GPU of its own.
 */
@NullMarked
package org.millrace.cli.gin.cuda;

import org.jspecify.annotations.NullMarked;
