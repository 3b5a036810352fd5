/**
 * NCCL as a Java library, all that {@code nccl.h} of 2.30.7 declares: unique ids, communicators that are split, shrunk
 * and grown, groups, registrations and windows, every collective, puts and signals, NCCL's own parameters, over
 * {@code org.millrace.ffi.nccl}.
 *
 * <p>
 * {@link org.millrace.nccl.NcclLibrary} is the way in. Every failed call is a {@link org.millrace.nccl.NcclException}
 * that has the call, the code and NCCL's own account of it. Functions newer than the loaded NCCL fail when they are
 * called, with the release that has them. It uses streams and memory of {@code org.millrace.cuda}; how ranks find each
 * other is the caller's matter.
 */
@NullMarked
package org.millrace.nccl;

import org.jspecify.annotations.NullMarked;
