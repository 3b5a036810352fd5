package org.millrace.cli;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import org.millrace.MillraceException;
import org.millrace.device.gin.GinBarrier;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.GinTeam;
import org.millrace.device.gin.HostGin;
import org.millrace.engine.GinRank;

/** One rank's part of a pattern: for each size rounds to warm up, rounds that are timed, and a look at what arrived. */
abstract class GinMeasurement {

    /** A fifth as many rounds before those that are timed. */
    private static final int WARMUP_SHARE = 5;

    final GinPlan plan;
    final GinRank.LocalWindow source;
    final GinRank.LocalWindow target;
    /** By context. */
    final HostGin[] gins;
    final GinTeam world;
    private final GinBarrier barrier;
    private final ResultTable table;

    /**
     * @param sourceParts how many of the largest puts the source has
     * @param targetParts the same of the target
     */
    GinMeasurement(GinPlan plan, GinRank rank, Arena arena, ResultTable table, long sourceParts, long targetParts) {
        this.plan = plan;
        this.table = table;
        long largest = Math.max(plan.sizes().getLast(), 1);
        source = rank.window(arena, largest * sourceParts);
        target = rank.window(arena, largest * targetParts);
        GinDeviceCommunicator device = rank.device(GinRequirements.of(plan.contexts(), 1, 0).withFormat(plan.format()));
        gins = new HostGin[plan.contexts()];
        for (int context = 0; context < gins.length; context++) {
            gins[context] = new HostGin(device, context);
        }
        world = device.world();
        barrier = GinBarrier.world(gins[0], 0);
    }

    final void run() {
        boolean first = world.rank() == 0;
        if (first) {
            table.begin(columns());
        }
        for (long bytes : plan.sizes()) {
            int iterations = plan.iterations(bytes * parts());
            fill(bytes);
            meet();
            rounds(bytes, Math.max(1, iterations / WARMUP_SHARE));
            long begin = System.nanoTime();
            rounds(bytes, iterations);
            double micros = (System.nanoTime() - begin) / 1e3;
            check(bytes);
            if (first) {
                table.row(row(bytes, iterations, micros));
            }
            checked();
        }
    }

    abstract ResultTable.Column[] columns();

    /** What is shown of so many rounds, by column. */
    abstract Object[] row(long bytes, int iterations, double micros);

    /** Puts of a round. */
    abstract long parts();

    /** Writes what the others will find. */
    abstract void fill(long bytes);

    abstract void rounds(long bytes, int count);

    /** Compares what arrived with what belongs there. */
    abstract void check(long bytes);

    /** All ranks are ready for what comes. */
    void meet() {
        barrier.sync();
    }

    /** This rank has checked: others may write again when all have. */
    void checked() {
        barrier.sync();
    }

    /** @param from what is compared, for messages */
    final void check(long start, long bytes, byte expected, String from) {
        for (long at = 0; at < bytes; at++) {
            if (target.memory().get(ValueLayout.JAVA_BYTE, start + at) != expected) {
                throw new MillraceException(
                        "rank " + world.rank() + ", " + bytes + " bytes" + from + ": byte " + at + " is wrong");
            }
        }
    }

    /** Of a part that a rank puts. */
    static byte content(long bytes, int from, int part) {
        return (byte) (bytes % 13 * 17 + from * 5 + part + 1);
    }
}
