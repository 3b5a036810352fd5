/** The command line: {@code millrace perf}, {@code millrace doctor} and {@code millrace plugin}. */
package org.millrace.cli;
