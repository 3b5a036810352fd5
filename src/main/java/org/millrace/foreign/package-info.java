/**
 * Calls of C functions by {@link org.millrace.foreign.CFunction}, which links each signature once for all functions,
 * and memory that such calls obtain directly from the operating system.
 */
@NullMarked
package org.millrace.foreign;

import org.jspecify.annotations.NullMarked;
