/**
 * {@code millrace doctor} reports the parts of this machine that Millrace can use, with one
 * {@link org.millrace.cli.doctor.Check} for each. It changes nothing.
 */
@NullMarked
package org.millrace.cli.doctor;

import org.jspecify.annotations.NullMarked;
