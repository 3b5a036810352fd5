package org.millrace.cli;

import java.time.Duration;
import java.util.function.BooleanSupplier;
import java.util.function.IntConsumer;
import java.util.function.LongSupplier;
import java.util.function.UnaryOperator;

/**
 * The automatic warm-up of a measurement. It runs operations in rounds and ends for all ranks together when it has
 * taken its time, added up over all lines.
 */
final class PerfWarmUp {

    /** Maximum number of operations after which the ranks compare their times. */
    static final int ROUND = 1000;
    private static final long ROUND_BYTES = 8 << 20;
    private static final Duration TIME = Duration.ofSeconds(2);

    private final LongSupplier nanoTime;
    private final BooleanSupplier timeIsUp;
    private final BooleanSupplier halfIsUp;
    private long spentNanos;

    /**
     * Creates a warm-up that has taken no time yet.
     *
     * @param forAny makes a question of one rank the question of all: true if the answer is true for any rank
     */
    PerfWarmUp(LongSupplier nanoTime, UnaryOperator<BooleanSupplier> forAny) {
        this.nanoTime = nanoTime;
        timeIsUp = forAny.apply(() -> spentNanos >= TIME.toNanos());
        halfIsUp = forAny.apply(() -> spentNanos >= TIME.toNanos() / 2);
    }

    /**
     * Runs one operation at least, so that a line's connections and memory have been used. Rounds double, so that slow
     * operations end soon after the time.
     *
     * @param operations number of operations to run if there is time
     * @param bytes      size of an operation
     * @param more       whether further operations follow within half of the time; collective
     * @param round      runs a number of operations and waits for them
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
