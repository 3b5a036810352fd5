/**
 * Native libraries: finding and loading those of the machine, and the one in C that comes with Millrace.
 *
 * <p>
 * {@link org.millrace.library.NativeLibrary} finds a library by a {@link org.millrace.library.NativeLibrary.Search} and
 * loads it for good; {@link org.millrace.library.BundledLibrary} is what the build compiles of {@code src/main/c}.
 * Nothing here knows a function of CUDA's or of NCCL's: their enums of
 * {@link org.millrace.library.NativeLibrary.NativeFunction} name them.
 */
@NullMarked
package org.millrace.library;

import org.jspecify.annotations.NullMarked;
