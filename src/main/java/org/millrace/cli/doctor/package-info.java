/**
 * {@code millrace doctor} reports which parts of this machine Millrace can use. One
 * {@link org.millrace.cli.doctor.Check} examines each part. The command changes nothing.
 */
@NullMarked
package org.millrace.cli.doctor;

import org.jspecify.annotations.NullMarked;
