package org.millrace.bench.measure;

/**
 * Samples of a pair in one JVM, in nanoseconds per operation and in the order of the rounds. {@code java[i]} and
 * {@code c[i]} were measured one immediately after the other.
 *
 * @param java one sample for each round
 * @param c    one sample for each round, empty without a C side
 */
public record Samples(double[] java, double[] c) {
}
