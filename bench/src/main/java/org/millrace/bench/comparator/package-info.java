/** The comparators: C compiled by the run, and called in batches. */
package org.millrace.bench.comparator;
