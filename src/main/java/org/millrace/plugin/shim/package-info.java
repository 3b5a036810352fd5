/**
 * The border to C: the functions that the shim calls, memory by address, the numbers that NCCL holds for pointers, and
 * the environment as C sees it. It knows none of the objects behind the functions.
 */
@NullMarked
package org.millrace.plugin.shim;

import org.jspecify.annotations.NullMarked;
