/** The host's side of the benchmarks with a GPU. */
package org.millrace.bench.gpu;
