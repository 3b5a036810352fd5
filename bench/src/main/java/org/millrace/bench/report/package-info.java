/** Tables and comparisons of JMH's results. */
package org.millrace.bench.report;
