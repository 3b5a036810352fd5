package org.millrace.cli.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.millrace.cli.console.ResultTable;
import org.millrace.MillraceException;
import org.millrace.device.gin.GinBarrier;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.GinTeam;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.RemoteAction;
import org.millrace.engine.GinRank;

/**
 * Many blocks put to all other ranks at once, as fast as there is room in their queues: the load of an exchange of
 * tokens, where descriptors a second count and not how long one takes. One thread plays all blocks of a rank in turn;
 * each block has a context, and a place of its own in every window. Its last put to a rank brings a signal.
 */
final class Flood {

    private final GinPlan plan;
    private final ResultTable table;
    private final GinRank.LocalWindow source;
    private final GinRank.LocalWindow target;
    private final HostGin[] gins;
    private final GinTeam world;
    private final GinBarrier barrier;
    private final int blocks;
    private final int peers;
    /** By block: how many were posted. */
    private final int[] posted;
    private long signals;

    Flood(GinPlan plan, GinRank rank, Arena arena, ResultTable table) {
        this.plan = plan;
        this.table = table;
        blocks = plan.blocks();
        peers = plan.ranks() - 1;
        posted = new int[blocks];
        long bytes = Math.max(plan.maxBytes(), 1) * blocks;
        source = rank.window(arena, bytes);
        target = rank.window(arena, bytes * plan.ranks());
        GinDeviceCommunicator device = rank.device(GinRequirements.of(plan.contexts(), 1, 0).withFormat(plan.format()));
        gins = new HostGin[plan.contexts()];
        for (int context = 0; context < gins.length; context++) {
            gins[context] = new HostGin(device, context);
        }
        world = device.world();
        barrier = GinBarrier.world(gins[0], 0);
    }

    void run() {
        boolean first = world.rank() == 0;
        if (first) {
            table.begin(new ResultTable.Column("bytes", "bytes", "%12d"),
                    new ResultTable.Column("descriptors", "descriptors", "%14d"),
                    new ResultTable.Column("us", "us", "%12.0f"),
                    new ResultTable.Column("descriptors/s", "descriptors_per_s", "%18.0f"),
                    new ResultTable.Column("GB/s a rank", "gb_per_s", "%12.3f"));
        }
        for (long bytes : plan.sizes()) {
            int each = plan.iterations(bytes * blocks * peers);
            for (int block = 0; block < blocks; block++) {
                source.memory().asSlice(block * bytes, bytes).fill(content(bytes, world.rank(), block));
            }
            barrier.sync();
            round(bytes, Math.max(1, each / 5));
            long begin = System.nanoTime();
            round(bytes, each);
            double micros = (System.nanoTime() - begin) / 1e3;
            check(bytes);
            if (first) {
                long descriptors = (long) each * blocks * peers;
                table.row(bytes, descriptors, micros, descriptors / micros * 1e6, descriptors * bytes / micros / 1e3);
            }
        }
    }

    /** Every block puts so often to each other rank. */
    private void round(long bytes, int each) {
        int all = each * peers;
        Arrays.fill(posted, 0);
        for (int open = blocks; open > 0;) {
            boolean moved = false;
            for (int block = 0; block < blocks; block++) {
                if (posted[block] < all && put(block, bytes, posted[block] >= all - peers)) {
                    moved = true;
                    posted[block]++;
                    open -= posted[block] == all ? 1 : 0;
                }
            }
            if (!moved) {
                Thread.yield(); // to the agent, which may have no core of its own
            }
        }
        signals += peers;
        for (int block = 0; block < blocks; block++) {
            int context = block % gins.length;
            if (block < gins.length) { // blocks of one context share its signal
                int sharing = (blocks - block + gins.length - 1) / gins.length;
                gins[context].waitSignal(0, signals * sharing);
            }
        }
        for (int context = 0; context < Math.min(gins.length, blocks); context++) {
            gins[context].flush();
        }
        barrier.sync();
    }

    private boolean put(int block, long bytes, boolean last) {
        int peer = (world.rank() + 1 + (posted[block] + block) % peers) % plan.ranks();
        return gins[block % gins.length].tryPut(world, peer, target.window(),
                ((long) world.rank() * blocks + block) * bytes, source.window(), block * bytes, bytes,
                last ? RemoteAction.increment(0) : RemoteAction.NONE, -1);
    }

    private static byte content(long bytes, int from, int block) {
        return (byte) (bytes % 13 * 17 + from * 5 + block + 1);
    }

    private void check(long bytes) {
        for (int from = 0; from < plan.ranks(); from++) {
            for (int block = 0; from != world.rank() && block < blocks; block++) {
                long start = ((long) from * blocks + block) * bytes;
                for (long at = start; at < start + bytes; at++) {
                    if (target.memory().get(ValueLayout.JAVA_BYTE, at) != content(bytes, from, block)) {
                        throw new MillraceException("rank " + world.rank() + ", " + bytes + " bytes of block " + block
                                + " of rank " + from + ": byte " + (at - start) + " is wrong");
                    }
                }
            }
        }
        barrier.sync();
    }
}
