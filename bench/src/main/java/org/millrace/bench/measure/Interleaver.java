package org.millrace.bench.measure;

/**
 * Measures both sides of a pair alternately, on the same thread and the same memory: a batch of Java, then a batch of
 * C. The next round has the reverse order. Changes of the machine meanwhile (clock, other programs, location of the
 * cores) affect both.
 */
public final class Interleaver {

    private static final long MAX_COUNT = 1L << 40;
    private static final int MIN_WARM_UP_BATCHES = 12;
    /**
     * Number of calls after which the JIT compiles the whole method, and not only its loop. Without that, every batch
     * would enter the loop through the interpreter.
     */
    private static final int COMPILING_CALLS = 2000;
    private static final int COMPILING_COUNT = 64;
    /** Maximum duration of a warm-up, as a multiple of the intended duration. It limits long operations. */
    private static final int TIMEOUT = 5;

    private final Effort effort;

    /**
     * Creates a measurer.
     *
     * @param effort duration of measurements
     */
    public Interleaver(Effort effort) {
        this.effort = effort;
    }

    /**
     * Warms a pair up and measures it.
     *
     * @param pair the pair
     * @return its samples
     * @throws IllegalStateException if a loop's other side did not answer
     */
    public Samples measure(Pair pair) {
        long javaCount = warmUp(pair, pair.java());
        if (pair.c() == null) {
            double[] java = new double[effort.rounds()];
            for (int round = 0; round < java.length; round++) {
                java[round] = sample(pair, pair.java(), javaCount);
            }
            return new Samples(java, new double[0]);
        }
        long cCount = warmUp(pair, pair.c());
        double[] java = new double[effort.rounds()];
        double[] c = new double[effort.rounds()];
        for (int round = 0; round < java.length; round++) {
            if (round % 2 == 0) {
                java[round] = sample(pair, pair.java(), javaCount);
                c[round] = sample(pair, pair.c(), cCount);
            } else {
                c[round] = sample(pair, pair.c(), cCount);
                java[round] = sample(pair, pair.java(), javaCount);
            }
        }
        return new Samples(java, c);
    }

    /** Makes the JIT compile the loop. Returns the number of operations that fill a batch. */
    private long warmUp(Pair pair, Loop loop) {
        long begin = System.nanoTime();
        for (int call = 0; call < COMPILING_CALLS
                && System.nanoTime() - begin < TIMEOUT * effort.warmUpNanos(); call++) {
            sample(pair, loop, 1 + call % COMPILING_COUNT);
        }
        begin = System.nanoTime();
        long count = 1;
        for (int batch = 0; batch < MIN_WARM_UP_BATCHES || System.nanoTime() - begin < effort.warmUpNanos(); batch++) {
            double perOperation = Math.max(sample(pair, loop, count), 0.05);
            // at most ten times the previous number, because the first batches may still be slow
            count = (long) Math.clamp(effort.batchNanos() / perOperation, 1, Math.min(count * 10.0, MAX_COUNT));
            if (System.nanoTime() - begin > TIMEOUT * effort.warmUpNanos()) {
                break; // an operation that is longer than a batch
            }
        }
        return count;
    }

    private static double sample(Pair pair, Loop loop, long count) {
        long begin = System.nanoTime();
        long result = loop.run(count);
        long end = System.nanoTime();
        if (result == Loop.LOST) {
            throw new IllegalStateException(pair.id() + ": the other side did not answer");
        }
        return (double) (end - begin) / count;
    }
}
