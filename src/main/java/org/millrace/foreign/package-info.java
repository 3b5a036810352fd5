/**
 * Calls of C functions, all through one link, with {@link org.millrace.foreign.CFunction}, and memory that comes
 * directly from the operating system through such calls.
 */
@NullMarked
package org.millrace.foreign;

import org.jspecify.annotations.NullMarked;
