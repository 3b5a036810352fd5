/**
 * Hours of random operations, kills, joins and closes, while the resources of the process are recorded.
 * {@code bench/README.md} describes its use.
 */
package org.millrace.bench.soak;
