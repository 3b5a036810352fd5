package org.millrace.bench.gpu;

/**
 * Converts the GPU's clock to the host's time. The GPU records when it posts a step and when it sees the credit. The
 * host sees the step between these two moments. In the fastest step it does so in the middle, except for the difference
 * between the two directions. One such step near the beginning and one near the end determine offset and rate.
 */
final class ClockFit {

    private final double hostAtFirst;
    private final double gpuAtFirst;
    private final double nanosPerCycle;

    /**
     * Computes the conversion.
     *
     * @param posted   GPU clock when each step was posted
     * @param credited GPU clock when each step had its credit
     * @param seen     host time when each step was seen
     */
    ClockFit(long[] posted, long[] credited, long[] seen) {
        int quarter = seen.length / 4;
        int first = quickest(posted, credited, 1, quarter);
        int last = quickest(posted, credited, seen.length - quarter, seen.length);
        gpuAtFirst = middle(posted[first], credited[first]);
        hostAtFirst = seen[first];
        nanosPerCycle = (seen[last] - seen[first]) / (middle(posted[last], credited[last]) - gpuAtFirst);
    }

    private static double middle(long begin, long end) {
        return begin + (end - begin) / 2.0;
    }

    private static int quickest(long[] posted, long[] credited, int from, int to) {
        int quickest = from;
        for (int step = from; step < to; step++) {
            if (credited[step] - posted[step] < credited[quickest] - posted[quickest]) {
                quickest = step;
            }
        }
        return quickest;
    }

    /** A moment of the GPU's in the host's nanoseconds. */
    double host(long gpu) {
        return hostAtFirst + (gpu - gpuAtFirst) * nanosPerCycle;
    }

    /** A duration of the GPU's in nanoseconds. */
    double nanos(long cycles) {
        return cycles * nanosPerCycle;
    }
}
