/**
 * NCCL as a Java library: all declarations of {@code nccl.h} of NCCL 2.30.7, over the generated
 * {@code org.millrace.ffi.nccl}. The package covers unique ids, communicators, groups, registrations and windows.
 * Communicators can be split, shrunk and grown. The package also covers every collective, puts and signals, and NCCL's
 * own settings.
 *
 * <p>
 * {@link org.millrace.nccl.NcclLibrary} is the entry point. A failed call throws a
 * {@link org.millrace.nccl.NcclException} that contains the function, the error code and NCCL's own text. If a function
 * is newer than the loaded NCCL, its call throws an exception that names the first release with this function. The
 * package uses the streams and the memory of {@code org.millrace.cuda}. The caller decides how the ranks exchange the
 * unique id.
 */
@NullMarked
package org.millrace.nccl;

import org.jspecify.annotations.NullMarked;
