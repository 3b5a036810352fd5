/**
 * Recordings of runs, and forecasts from them. {@link org.millrace.rehearsal.Recording} records the activity of a
 * process, and {@link org.millrace.rehearsal.RecordedRun} holds a recording that was read. Only the code that starts a
 * recording and the command line depend on this package.
 */
@NullMarked
package org.millrace.rehearsal;

import org.jspecify.annotations.NullMarked;
