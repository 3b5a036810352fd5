package org.millrace.cli;

import java.lang.foreign.Arena;
import org.millrace.device.gin.RemoteAction;
import org.millrace.engine.GinRank;

/** Puts, or signals alone, to and fro between ranks 0 and 1. */
final class PingPong extends GinMeasurement {

    private long rounds;

    PingPong(GinPlan plan, GinRank rank, Arena arena, ResultTable table) {
        super(plan, rank, arena, table, 1, 1);
    }

    @Override
    ResultTable.Column[] columns() {
        return new ResultTable.Column[] {new ResultTable.Column("bytes", "bytes", "%12d"),
                new ResultTable.Column("iterations", "iterations", "%12d"),
                new ResultTable.Column("us one way", "us_one_way", "%12.2f"),
                new ResultTable.Column("GB/s", "gb_per_s", "%12.3f")};
    }

    @Override
    Object[] row(long bytes, int iterations, double micros) {
        double oneWay = micros / iterations / 2;
        return new Object[] {bytes, iterations, oneWay, bytes / oneWay / 1e3};
    }

    @Override
    long parts() {
        return 1;
    }

    @Override
    void fill(long bytes) {
        source.memory().asSlice(0, bytes).fill((byte) (bytes % 251 + world.rank() + 1));
    }

    /** The first signal does. */
    @Override
    void meet() {}

    @Override
    void rounds(long bytes, int count) {
        int peer = 1 - world.rank();
        for (int i = 0; i < count; i++) {
            rounds++;
            if (world.rank() == 1) {
                gins[0].waitSignal(0, rounds);
            }
            if (bytes > 0) {
                gins[0].put(world, peer, target.window(), 0, source.window(), 0, bytes, RemoteAction.increment(0), -1);
            } else {
                gins[0].signal(world, peer, RemoteAction.increment(0));
            }
            if (world.rank() == 0) {
                gins[0].waitSignal(0, rounds);
            }
        }
    }

    @Override
    void check(long bytes) {
        check(0, bytes, (byte) (bytes % 251 + 1 - world.rank() + 1), "");
        gins[0].flush();
    }

    /** Rank 1 has checked before rank 0 writes again. */
    @Override
    void checked() {
        rounds(0, 1);
    }
}
