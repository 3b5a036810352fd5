package org.millrace.cli.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import org.millrace.MillraceException;
import org.millrace.cli.base.ResultTable;
import org.millrace.device.gin.GinBarrier;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.GinTeam;
import org.millrace.device.gin.HostGin;
import org.millrace.engine.GinRank;

/**
 * One rank's part of a pattern. For each size it runs warm-up rounds and timed rounds, and checks the received data.
 */
abstract class GinMeasurement {

    /** Number of timed rounds for each warm-up round. */
    private static final int WARMUP_SHARE = 5;

    final GinPlan plan;
    final GinRank.LocalWindow source;
    final GinRank.LocalWindow target;
    /** Host implementations of NCCL's device functions, one for each context. */
    final HostGin[] gins;
    final GinTeam world;
    private final GinBarrier barrier;
    private final ResultTable table;

    /**
     * @param sourceParts size of the source, in multiples of the largest put
     * @param targetParts size of the target, in multiples of the largest put
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

    /**
     * Returns the values of a table line, one for each column. {@code micros} is the total time of all rounds in
     * microseconds.
     */
    abstract Object[] row(long bytes, int iterations, double micros);

    /** Returns the number of puts of a round. */
    abstract long parts();

    /** Writes the data that the peers will receive. */
    abstract void fill(long bytes);

    abstract void rounds(long bytes, int count);

    /** Compares the received data with the expected data. */
    abstract void check(long bytes);

    /** Waits until all ranks are ready for the next rounds. */
    void meet() {
        barrier.sync();
    }

    /**
     * Tells the peers that this rank has checked its data. Returns when all ranks have called this method. Puts may
     * then change the data again.
     */
    void checked() {
        barrier.sync();
    }

    /**
     * Compares each received byte with the expected byte. Throws an exception if one differs.
     *
     * @param from origin of the data, for the message
     */
    final void check(long start, long bytes, byte expected, String from) {
        for (long at = 0; at < bytes; at++) {
            if (target.memory().get(ValueLayout.JAVA_BYTE, start + at) != expected) {
                throw new MillraceException(
                        "rank " + world.rank() + ", " + bytes + " bytes" + from + ": byte " + at + " is wrong");
            }
        }
    }

    /** Returns the value of each byte in the part that a rank puts. */
    static byte content(long bytes, int from, int part) {
        return (byte) (bytes % 13 * 17 + from * 5 + part + 1);
    }
}
