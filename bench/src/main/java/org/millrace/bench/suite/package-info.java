/** The suites of measurements. */
package org.millrace.bench.suite;
