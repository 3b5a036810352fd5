/**
 * Calls of C functions, and memory from the operating system. {@link org.millrace.foreign.CFunction} calls the
 * functions, and links each signature once for all functions. {@link org.millrace.foreign.PageMemory} obtains memory
 * directly from the operating system by such calls.
 */
@NullMarked
package org.millrace.foreign;

import org.jspecify.annotations.NullMarked;
