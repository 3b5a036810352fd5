/**
 * Recordings of runs, and forecasts from them. {@link org.millrace.rehearsal.Recording} records the activity of a
 * process, and {@link org.millrace.rehearsal.RecordedRun} holds a recording that was read. Two parts of Millrace depend
 * on this package: the code that starts a recording, and the command line.
 */
@NullMarked
package org.millrace.rehearsal;

import org.jspecify.annotations.NullMarked;
