package org.millrace.cli;

import java.lang.foreign.Arena;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.RemoteAction;
import org.millrace.engine.GinRank;

/** Every rank puts a part of its window to each rank, itself included, spread over the contexts. */
final class AllToAll extends GinMeasurement {

    AllToAll(GinPlan plan, GinRank rank, Arena arena, ResultTable table) {
        super(plan, rank, arena, table, plan.ranks(), plan.ranks());
    }

    @Override
    ResultTable.Column[] columns() {
        return new ResultTable.Column[] {new ResultTable.Column("bytes/part", "bytes", "%12d"),
                new ResultTable.Column("iterations", "iterations", "%12d"),
                new ResultTable.Column("us", "us", "%12.2f"),
                new ResultTable.Column("GB/s a rank", "gb_per_s", "%12.3f")};
    }

    @Override
    Object[] row(long bytes, int iterations, double micros) {
        double each = micros / iterations;
        return new Object[] {bytes, iterations, each, bytes * plan.ranks() / each / 1e3};
    }

    @Override
    long parts() {
        return plan.ranks();
    }

    @Override
    void fill(long bytes) {
        for (int to = 0; to < plan.ranks(); to++) {
            source.memory().asSlice(to * bytes, bytes).fill(content(bytes, world.rank(), to));
        }
    }

    @Override
    void rounds(long bytes, int count) {
        for (int i = 0; i < count; i++) {
            for (int step = 0; step < plan.ranks(); step++) {
                int to = (world.rank() + step) % plan.ranks();
                gins[to % gins.length].put(world, to, target.window(), world.rank() * bytes, source.window(),
                        to * bytes, bytes, RemoteAction.increment(0), -1);
            }
            HostGin mine = gins[world.rank() % gins.length]; // what is put to a rank goes in the context of its number
            mine.waitSignalFollowShadow(0, plan.ranks());
            meet();
        }
    }

    @Override
    void check(long bytes) {
        for (int from = 0; from < plan.ranks(); from++) {
            check(from * bytes, bytes, content(bytes, from, world.rank()), " from rank " + from);
        }
    }
}
