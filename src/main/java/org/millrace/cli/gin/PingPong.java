package org.millrace.cli.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.cli.console.ResultTable;
import org.millrace.MillraceException;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.GinTeam;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.RemoteAction;
import org.millrace.engine.GinRank;

/** Puts, or signals alone, to and fro between ranks 0 and 1. */
final class PingPong {

    private final GinPlan plan;
    private final ResultTable table;
    private final GinRank.LocalWindow source;
    private final GinRank.LocalWindow target;
    private final HostGin gin;
    private final GinTeam world;
    private long rounds;

    PingPong(GinPlan plan, GinRank rank, Arena arena, ResultTable table) {
        this.plan = plan;
        this.table = table;
        long bytes = Math.max(plan.sizes().getLast(), 1);
        source = rank.window(arena, bytes);
        target = rank.window(arena, bytes);
        GinDeviceCommunicator device = rank.device(GinRequirements.of(plan.contexts(), 1, 0).withFormat(plan.format()));
        gin = new HostGin(device, 0);
        world = device.world();
    }

    void run() {
        if (world.rank() > 1) {
            return; // the others only are there
        }
        if (world.rank() == 0) {
            table.begin(new ResultTable.Column("bytes", "bytes", "%12d"),
                    new ResultTable.Column("iterations", "iterations", "%12d"),
                    new ResultTable.Column("us one way", "us_one_way", "%12.2f"),
                    new ResultTable.Column("GB/s", "gb_per_s", "%12.3f"));
        }
        for (long bytes : plan.sizes()) {
            int iterations = plan.iterations(bytes);
            source.memory().asSlice(0, bytes).fill((byte) (bytes % 251 + world.rank() + 1));
            rounds(bytes, Math.max(1, iterations / 5));
            long begin = System.nanoTime();
            rounds(bytes, iterations);
            double micros = (System.nanoTime() - begin) / 1e3 / iterations / 2;
            check(bytes);
            if (world.rank() == 0) {
                table.row(bytes, iterations, micros, bytes / micros / 1e3);
            }
        }
    }

    private void rounds(long bytes, int count) {
        int peer = 1 - world.rank();
        for (int i = 0; i < count; i++) {
            rounds++;
            if (world.rank() == 1) {
                gin.waitSignal(0, rounds);
            }
            if (bytes > 0) {
                gin.put(world, peer, target.window(), 0, source.window(), 0, bytes, RemoteAction.increment(0), -1);
            } else {
                gin.signal(world, peer, RemoteAction.increment(0));
            }
            if (world.rank() == 0) {
                gin.waitSignal(0, rounds);
            }
        }
    }

    private void check(long bytes) {
        byte expected = (byte) (bytes % 251 + 1 - world.rank() + 1);
        MemorySegment arrived = target.memory().asSlice(0, bytes);
        for (long at = 0; at < bytes; at++) {
            if (arrived.get(ValueLayout.JAVA_BYTE, at) != expected) {
                throw new MillraceException("rank " + world.rank() + ", " + bytes + " bytes: byte " + at + " is wrong");
            }
        }
        gin.flush();
        rounds(0, 1); // rank 1 has checked before rank 0 writes again
    }
}
