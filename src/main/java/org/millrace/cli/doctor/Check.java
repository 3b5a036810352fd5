package org.millrace.cli.doctor;

import java.util.function.Supplier;

/**
 * Checks one thing that Millrace needs or can use.
 *
 * @param look runs the check, for a few seconds at most; it need not catch unexpected exceptions
 */
record Check(String subject, Supplier<CheckResult> look) {
}
