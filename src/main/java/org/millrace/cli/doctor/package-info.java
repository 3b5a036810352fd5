/**
 * {@code millrace doctor}: what is on this machine, what can be used, and what to do about the rest. A
 * {@link org.millrace.cli.doctor.Check} looks at one thing. It changes nothing, and nothing else uses it.
 */
@NullMarked
package org.millrace.cli.doctor;

import org.jspecify.annotations.NullMarked;
