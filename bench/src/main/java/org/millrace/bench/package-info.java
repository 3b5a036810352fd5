/**
 * Microbenchmarks of the proxy's hot path. {@code bench/README.md} describes how to run them and how to read the
 * results.
 */
package org.millrace.bench;
