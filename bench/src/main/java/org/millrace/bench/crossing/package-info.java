/** What it costs to leave Java for C, and C for Java; and the ways in which Java reaches memory. */
package org.millrace.bench.crossing;
