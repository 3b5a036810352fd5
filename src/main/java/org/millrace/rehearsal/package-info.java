/**
 * Recordings of runs, and what is made of them: {@link org.millrace.rehearsal.Recording} writes what a process does,
 * {@link org.millrace.rehearsal.RecordedRun} reads it. Nothing else depends on this package but what starts a
 * recording, and the command line.
 */
@NullMarked
package org.millrace.rehearsal;

import org.jspecify.annotations.NullMarked;
