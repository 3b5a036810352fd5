/**
 * {@code millrace doctor}, which reports the usable parts of this machine, with one
 * {@link org.millrace.cli.doctor.Check} for each, and changes nothing.
 */
@NullMarked
package org.millrace.cli.doctor;

import org.jspecify.annotations.NullMarked;
