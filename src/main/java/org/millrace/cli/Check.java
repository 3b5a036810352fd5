package org.millrace.cli;

import java.util.function.Supplier;

/**
 * Checks one thing that Millrace needs or can use.
 *
 * @param look may take a few seconds; does not have to catch unexpected exceptions
 */
record Check(String subject, Supplier<CheckResult> look) {
}
