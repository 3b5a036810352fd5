/**
 * The border to C: the functions that the shim calls, memory by address, and the numbers that NCCL holds for pointers.
 * It knows none of the objects behind the functions.
 */
@NullMarked
package org.millrace.plugin.shim;

import org.jspecify.annotations.NullMarked;
