package org.millrace.bench.measure;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
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
        Ratio ratio = Ratio.of(List.of(new Samples(new double[] {2, 2, 2, 2, 900}, new double[] {1, 1, 1, 1, 1})));
        assertEquals(2, ratio.value());
        assertTrue(ratio.low() <= 2 && ratio.high() >= 2);
    }

    @Test
    void theRatioIsThatWithinJvmsAndNotBetweenThem() {
        // in the second JVM the cores were distant: both sides took four times as long, and the ratio is still 1.1
        Ratio ratio = Ratio
                .of(List.of(new Samples(noise(110, 21), noise(100, 21)), new Samples(noise(440, 21), noise(400, 21))));
        assertEquals(1.1, ratio.value(), 0.02);
        assertTrue(ratio.high() - ratio.low() < 0.1, ratio.toString());
    }

    @Test
    void theSameSamplesGiveTheSameInterval() {
        List<Samples> forks = List.of(new Samples(noise(110, 21), noise(100, 21)));
        assertEquals(Ratio.of(forks), Ratio.of(forks));
    }

    @Test
    void twoPlacementsAreFound() {
        Modes modes = Modes.of(Statistics.join(noise(100, 30), noise(450, 12)));
        assertNotNull(modes);
        assertEquals(100, modes.low(), 5);
        assertEquals(450, modes.high(), 20);
        assertEquals(12.0 / 42, modes.share(), 1e-9);
    }

    @Test
    void scatterAndSingleDisturbancesAreNoPlacements() {
        assertNull(Modes.of(noise(100, 40)));
        assertNull(Modes.of(Statistics.join(noise(100, 40), noise(5000, 3))));
        assertNull(Modes.of(Statistics.join(noise(100, 20), noise(115, 20))));
        assertNull(Modes.of(new double[] {1, 100}));
    }

    private static double[] noise(double around, int count) {
        return new SplittableRandom(SEED).doubles(count, around * 0.97, around * 1.03).toArray();
    }
}
