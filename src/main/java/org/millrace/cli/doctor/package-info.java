/**
 * {@code millrace doctor}: what is on this machine, what can be used, and what to do about the rest. Every
 * {@link org.millrace.cli.doctor.Check} looks at one thing.
 */
package org.millrace.cli.doctor;
