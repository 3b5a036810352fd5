package org.millrace.bench.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class StatisticsTest {

    private static final long SEED = 42;

    @Test
    void quantilesLieBetweenSamples() {
        double[] samples = {4, 1, 3, 2};
        assertEquals(2.5, Statistics.median(samples));
        assertEquals(1, Statistics.quantile(samples, 0));
        assertEquals(4, Statistics.quantile(samples, 1));
        assertEquals(1.75, Statistics.quantile(samples, 0.25));
        assertThrows(IllegalArgumentException.class, () -> Statistics.median(new double[0]));
    }

    @Test
    void oneDisturbedSampleDoesNotMoveTheRatio() {
        Ratio ratio = Ratio.of(new double[][] {{2, 2, 2, 2, 900}}, new double[][] {{1, 1, 1, 1, 1}});
        assertEquals(2, ratio.value());
        assertTrue(ratio.low() <= 2 && ratio.high() >= 2);
    }

    @Test
    void theIntervalContainsTheScatterOfTheJvms() {
        Ratio ratio = Ratio.of(new double[][] {noise(110, 21), noise(220, 21), noise(110, 21)},
                new double[][] {noise(100, 21)});
        assertEquals(1.1, ratio.value(), 0.05);
        assertTrue(ratio.low() < 1.15 && ratio.high() > 2, ratio.toString());
    }

    @Test
    void theSameSamplesGiveTheSameInterval() {
        double[][] java = {noise(110, 21), noise(110, 21)};
        double[][] c = {noise(100, 21)};
        assertEquals(Ratio.of(java, c), Ratio.of(java, c));
    }

    private static double[] noise(double around, int count) {
        return new SplittableRandom(SEED).doubles(count, around * 0.97, around * 1.03).toArray();
    }
}
