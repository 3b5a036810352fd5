/**
 * NCCL as a Java library, with all declarations of {@code nccl.h} of 2.30.7, over {@code org.millrace.ffi.nccl}. It
 * covers unique ids, communicators that are split, shrunk and grown, groups, registrations and windows. It also covers
 * every collective, puts and signals, and NCCL's own parameters.
 *
 * <p>
 * {@link org.millrace.nccl.NcclLibrary} is the entry point. Every failed call is a
 * {@link org.millrace.nccl.NcclException} with the call, the code and NCCL's own text. A function that is newer than
 * the loaded NCCL fails when it is called, and the message names the release that has it. The package uses streams and
 * memory of {@code org.millrace.cuda}. The caller decides how ranks find each other.
 */
@NullMarked
package org.millrace.nccl;

import org.jspecify.annotations.NullMarked;
