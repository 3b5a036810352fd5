/**
 * Hours of random operations, kills, joins and closes, with what the process holds meanwhile. {@code bench/README.md}
 * says how to run it.
 */
package org.millrace.bench.soak;
