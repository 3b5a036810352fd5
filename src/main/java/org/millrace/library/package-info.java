/**
 * Native libraries: finding and loading the machine's libraries, and the C library that is part of Millrace.
 *
 * <p>
 * {@link org.millrace.library.NativeLibrary} finds a library by a {@link org.millrace.library.NativeLibrary.Search} and
 * loads it permanently. {@link org.millrace.library.BundledLibrary} is the library that the build compiles from
 * {@code src/main/c}. The package contains no function of CUDA or NCCL. Enums of other packages name the functions, and
 * implement {@link org.millrace.library.NativeLibrary.NativeFunction}.
 */
@NullMarked
package org.millrace.library;

import org.jspecify.annotations.NullMarked;
