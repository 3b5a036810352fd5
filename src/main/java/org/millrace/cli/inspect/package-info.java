/**
 * {@code millrace ps}, {@code top}, {@code dump}, {@code metrics}, {@code trace} and {@code why}. They read the traces
 * of {@code org.millrace.trace}, and do not disturb the traced processes.
 */
@NullMarked
package org.millrace.cli.inspect;

import org.jspecify.annotations.NullMarked;
