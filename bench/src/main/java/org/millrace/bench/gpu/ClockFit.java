package org.millrace.bench.gpu;

/**
 * The GPU's clock in the host's time. Between posting and credit of a step on the GPU lies the moment at which the host
 * saw it; in the quickest step it lies in the middle, give or take what the two ways differ by. One such step near the
 * beginning and one near the end give offset and rate.
 */
final class ClockFit {

    private final double hostAtFirst;
    private final double gpuAtFirst;
    private final double nanosPerCycle;

    /**
     * Fits.
     *
     * @param posted   GPU clock when each step was posted
     * @param credited GPU clock when each had its credit
     * @param seen     host time when each was seen
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
