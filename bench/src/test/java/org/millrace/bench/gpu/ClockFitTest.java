package org.millrace.bench.gpu;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class ClockFitTest {

    private static final long SEED = 7;

    @Test
    void theGpusClockIsFoundThroughJitter() {
        double cyclesPerNano = 1.755;
        long offset = 123_456_789_012L;
        SplittableRandom random = new SplittableRandom(SEED);
        int steps = 2048;
        long[] posted = new long[steps];
        long[] credited = new long[steps];
        long[] seen = new long[steps];
        double[] postedInHostTime = new double[steps];
        double time = 5e9;
        for (int step = 0; step < steps; step++) {
            postedInHostTime[step] = time;
            posted[step] = offset + Math.round(time * cyclesPerNano);
            double there = 1000 + random.nextDouble() * random.nextDouble() * 800;
            double back = 1000 + random.nextDouble() * random.nextDouble() * 800;
            seen[step] = Math.round(time + there);
            time += there + back;
            credited[step] = offset + Math.round(time * cyclesPerNano);
        }
        ClockFit fit = new ClockFit(posted, credited, seen);
        for (int step = 0; step < steps; step += 100) {
            assertEquals(postedInHostTime[step], fit.host(posted[step]), 40, "seed " + SEED + ", step " + step);
        }
        assertEquals(1000, fit.nanos(1755), 1);
    }
}
