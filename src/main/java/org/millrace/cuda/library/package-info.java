/**
 * Finding and loading native libraries, and holding on to what they own: the room below every binding of the project.
 *
 * <p>
 * {@link org.millrace.library.NativeLibrary} finds a library by a {@link org.millrace.library.NativeLibrary.Search} and
 * loads it for good; {@link org.millrace.cuda.handle.NativeHandle} gives an object of a library back exactly once and
 * never while a call uses it. Nothing here knows a function of CUDA's or of NCCL's: their enums of
 * {@link org.millrace.library.NativeFunction} name them.
 */
@NullMarked
package org.millrace.cuda.library;

import org.jspecify.annotations.NullMarked;
