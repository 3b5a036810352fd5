/**
 * The commands {@code millrace record}, {@code millrace replay} and {@code millrace simulate}. Each command reads
 * recordings of {@code org.millrace.rehearsal}. The setting {@code MILLRACE_RECORD} makes these recordings.
 */
@NullMarked
package org.millrace.cli.rehearsal;

import org.jspecify.annotations.NullMarked;
