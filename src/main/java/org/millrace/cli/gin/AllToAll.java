package org.millrace.cli.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import org.millrace.cli.console.ResultTable;
import org.millrace.MillraceException;
import org.millrace.device.gin.GinBarrier;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.GinTeam;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.RemoteAction;
import org.millrace.engine.GinRank;

/** Every rank puts a part of its window to each rank, itself included, spread over the contexts. */
final class AllToAll {

    private final GinPlan plan;
    private final ResultTable table;
    private final GinRank.LocalWindow source;
    private final GinRank.LocalWindow target;
    private final HostGin[] gins;
    private final GinTeam world;
    private final GinBarrier barrier;

    AllToAll(GinPlan plan, GinRank rank, Arena arena, ResultTable table) {
        this.plan = plan;
        this.table = table;
        long bytes = Math.max(plan.maxBytes(), 1) * plan.ranks();
        source = rank.window(arena, bytes);
        target = rank.window(arena, bytes);
        GinDeviceCommunicator device = rank.device(GinRequirements.of(plan.contexts(), 1, 0).withFormat(plan.format()));
        gins = new HostGin[plan.contexts()];
        for (int context = 0; context < gins.length; context++) {
            gins[context] = new HostGin(device, context);
        }
        world = device.world();
        barrier = GinBarrier.world(gins[0], 0);
    }

    void run() {
        if (world.rank() == 0) {
            table.begin(new ResultTable.Column("bytes/part", "bytes", "%12d"),
                    new ResultTable.Column("iterations", "iterations", "%12d"),
                    new ResultTable.Column("us", "us", "%12.2f"),
                    new ResultTable.Column("GB/s a rank", "gb_per_s", "%12.3f"));
        }
        for (long bytes : plan.sizes()) {
            int iterations = plan.iterations(bytes * plan.ranks());
            for (int to = 0; to < plan.ranks(); to++) {
                source.memory().asSlice(to * bytes, bytes).fill(content(bytes, world.rank(), to));
            }
            barrier.sync();
            rounds(bytes, Math.max(1, iterations / 5));
            long begin = System.nanoTime();
            rounds(bytes, iterations);
            double micros = (System.nanoTime() - begin) / 1e3 / iterations;
            check(bytes);
            if (world.rank() == 0) {
                table.row(bytes, iterations, micros, bytes * plan.ranks() / micros / 1e3);
            }
            barrier.sync();
        }
    }

    private static byte content(long bytes, int from, int to) {
        return (byte) (bytes % 13 * 17 + from * 5 + to + 1);
    }

    private void rounds(long bytes, int count) {
        for (int i = 0; i < count; i++) {
            for (int step = 0; step < plan.ranks(); step++) {
                int to = (world.rank() + step) % plan.ranks();
                gins[to % gins.length].put(world, to, target.window(), world.rank() * bytes, source.window(),
                        to * bytes, bytes, RemoteAction.increment(0), -1);
            }
            HostGin mine = gins[world.rank() % gins.length]; // what comes to a rank comes in the context of its number
            mine.waitSignalFollowShadow(0, plan.ranks());
            barrier.sync();
        }
    }

    private void check(long bytes) {
        for (int from = 0; from < plan.ranks(); from++) {
            for (long at = 0; at < bytes; at++) {
                if (target.memory().get(ValueLayout.JAVA_BYTE, from * bytes + at) != content(bytes, from,
                        world.rank())) {
                    throw new MillraceException("rank " + world.rank() + ", " + bytes + " bytes from rank " + from
                            + ": byte " + at + " is wrong");
                }
            }
        }
    }
}
