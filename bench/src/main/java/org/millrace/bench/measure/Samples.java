package org.millrace.bench.measure;

/**
 * What one JVM measured of a pair, nanoseconds per operation, in the order of the rounds: {@code java[i]} and
 * {@code c[i]} were taken one right after the other.
 *
 * @param java one sample for each round
 * @param c    the same; empty without a C side
 */
public record Samples(double[] java, double[] c) {
}
