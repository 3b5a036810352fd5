/**
 * Recordings of runs, and forecasts from them. {@link org.millrace.rehearsal.Recording} writes the activity of a
 * process, and {@link org.millrace.rehearsal.RecordedRun} holds it after reading. Only the start of a recording and the
 * command line depend on this package.
 */
@NullMarked
package org.millrace.rehearsal;

import org.jspecify.annotations.NullMarked;
