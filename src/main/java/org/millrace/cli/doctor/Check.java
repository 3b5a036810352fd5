package org.millrace.cli.doctor;

import java.util.function.Supplier;

/**
 * A check of one thing that Millrace needs or can use.
 *
 * @param look function that runs the check, for a few seconds at most. The caller catches unexpected exceptions
 */
record Check(String subject, Supplier<CheckResult> look) {
}
