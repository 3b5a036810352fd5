/** Microbenchmarks of the proxy's hot path. {@code bench/README.md} says how to run and how to read them. */
package org.millrace.bench;
