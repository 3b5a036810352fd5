package org.millrace.cli.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

class PerfWarmUpTest {

    private long now;
    private final List<Integer> rounds = new ArrayList<>();

    private void run(PerfWarmUp warmUp, int operations, long bytes, Duration each) {
        warmUp.run(operations, bytes, () -> false, round -> {
            rounds.add(round);
            now += each.toNanos() * round;
        });
    }

    private PerfWarmUp create() {
        return new PerfWarmUp(() -> now, UnaryOperator.identity());
    }

    @Test
    void roundsDoubleUpToAThousandOperations() {
        run(create(), 2500, 8, Duration.ofNanos(1));
        assertEquals(List.of(1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 476), rounds);
    }

    @Test
    void roundsOfLargeOperationsAreShort() {
        run(create(), 20, 1 << 20, Duration.ofNanos(1));
        assertEquals(List.of(1, 1, 2, 4, 8, 4), rounds);
    }

    @Test
    void twoSecondsAreTheTimeOfAllLinesTogether() {
        PerfWarmUp warmUp = create();
        run(warmUp, 8, 64 << 20, Duration.ofMillis(500));
        assertEquals(List.of(1, 1, 1, 1), rounds);
        rounds.clear();
        run(warmUp, 8, 64 << 20, Duration.ofMillis(500));
        assertEquals(List.of(1), rounds, "each line has one operation");
    }

    @Test
    void furtherOperationsRunAsLongAsTheyAreWanted() {
        create().run(1, 8, () -> rounds.size() < 3, rounds::add);
        assertEquals(List.of(1, 1, 2), rounds);
        rounds.clear();
        create().run(1, 8, () -> true, round -> {
            rounds.add(round);
            now += Duration.ofMillis(300).toNanos();
        });
        assertEquals(List.of(1, 1, 2, 4), rounds, "within half of the time");
    }
}
