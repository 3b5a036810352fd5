/**
 * NCCL's profiler table: what NCCL says of operations and kernels is written down in the process's trace. The shim does
 * that itself ({@code src/main/c/profiler.c}); Java gives it the memory.
 */
@NullMarked
package org.millrace.plugin.profile;

import org.jspecify.annotations.NullMarked;
