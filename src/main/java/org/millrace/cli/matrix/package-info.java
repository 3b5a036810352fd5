/**
 * {@code millrace matrix}: every collective over every transport, in every protocol and mode, with threads and
 * processes. It says what to run and what became of it; {@code launch} runs the ranks and {@code check} compares the
 * results.
 */
@NullMarked
package org.millrace.cli.matrix;

import org.jspecify.annotations.NullMarked;
