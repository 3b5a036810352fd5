package org.millrace.cli.perf;

import java.time.Duration;
import java.util.function.BooleanSupplier;
import java.util.function.IntConsumer;
import java.util.function.LongSupplier;
import java.util.function.UnaryOperator;

/**
 * The automatic warm-up of a measurement. It runs operations in rounds. When the total time of the rounds reaches two
 * seconds on one rank, the warm-up ends on all ranks together.
 */
final class PerfWarmUp {

    /** Maximum number of operations of a round. After each round the ranks compare their times. */
    static final int ROUND = 1000;
    private static final long ROUND_BYTES = 8 << 20;
    private static final Duration TIME = Duration.ofSeconds(2);

    private final LongSupplier nanoTime;
    private final BooleanSupplier timeIsUp;
    private final BooleanSupplier halfIsUp;
    private long spentNanos;

    /**
     * @param forAny function that converts a condition of this rank to a common condition: true if the condition of any
     *               rank is true
     */
    PerfWarmUp(LongSupplier nanoTime, UnaryOperator<BooleanSupplier> forAny) {
        this.nanoTime = nanoTime;
        timeIsUp = forAny.apply(() -> spentNanos >= TIME.toNanos());
        halfIsUp = forAny.apply(() -> spentNanos >= TIME.toNanos() / 2);
    }

    /**
     * Runs at least one operation, so that connections and memory are used before a line is measured. The number of
     * operations in a round doubles, so that a warm-up of slow operations ends soon after its time limit.
     *
     * @param operations number of operations to run if the time suffices
     * @param bytes      size of an operation
     * @param more       condition to run more than {@code operations}. It applies during the first half of the
     *                   warm-up's time. All ranks evaluate it together.
     * @param round      function that runs a number of operations and waits for them
     */
    void run(int operations, long bytes, BooleanSupplier more, IntConsumer round) {
        int most = Math.clamp(ROUND_BYTES / Math.max(1, bytes), 1, ROUND);
        int done = 0;
        boolean goesOn;
        do {
            int next = Math.min(most, Math.max(1, done < operations ? Math.min(done, operations - done) : done));
            long begun = nanoTime.getAsLong();
            round.accept(next);
            spentNanos += nanoTime.getAsLong() - begun;
            done += next;
            goesOn = done < operations ? !timeIsUp.getAsBoolean() : more.getAsBoolean() && !halfIsUp.getAsBoolean();
        } while (goesOn);
    }
}
