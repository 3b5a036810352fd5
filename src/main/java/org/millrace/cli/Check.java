package org.millrace.cli;

import java.util.function.Supplier;

/**
 * Looks at one thing that Millrace needs or can use.
 *
 * @param look may take a few seconds; need not catch what it does not expect
 */
record Check(String subject, Supplier<CheckResult> look) {
}
