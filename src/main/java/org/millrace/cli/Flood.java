package org.millrace.cli;

import java.lang.foreign.Arena;
import java.util.Arrays;
import org.millrace.device.gin.RemoteAction;
import org.millrace.engine.GinRank;

/**
 * Many blocks put to all other ranks at once, as fast as there is room in their queues: the load of an exchange of
 * tokens, where descriptors a second count and not how long one takes. One thread plays all blocks of a rank in turn;
 * each block has a context, and a place of its own in every window. Its last put to a rank brings a signal.
 */
final class Flood extends GinMeasurement {

    private final int blocks;
    private final int peers;
    /** By block: how many were posted. */
    private final int[] posted;
    private long signals;

    Flood(GinPlan plan, GinRank rank, Arena arena, ResultTable table) {
        super(plan, rank, arena, table, plan.blocks(), (long) plan.blocks() * plan.ranks());
        blocks = plan.blocks();
        peers = plan.ranks() - 1;
        posted = new int[blocks];
    }

    @Override
    ResultTable.Column[] columns() {
        return new ResultTable.Column[] {new ResultTable.Column("bytes", "bytes", "%12d"),
                new ResultTable.Column("descriptors", "descriptors", "%14d"),
                new ResultTable.Column("us", "us", "%12.0f"),
                new ResultTable.Column("descriptors/s", "descriptors_per_s", "%18.0f"),
                new ResultTable.Column("GB/s a rank", "gb_per_s", "%12.3f")};
    }

    @Override
    Object[] row(long bytes, int each, double micros) {
        long descriptors = each * parts();
        return new Object[] {bytes, descriptors, micros, descriptors / micros * 1e6,
                descriptors * bytes / micros / 1e3};
    }

    @Override
    long parts() {
        return (long) blocks * peers;
    }

    @Override
    void fill(long bytes) {
        for (int block = 0; block < blocks; block++) {
            source.memory().asSlice(block * bytes, bytes).fill(content(bytes, world.rank(), block));
        }
    }

    @Override
    void rounds(long bytes, int each) {
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
        meet();
    }

    private boolean put(int block, long bytes, boolean last) {
        int peer = (world.rank() + 1 + (posted[block] + block) % peers) % plan.ranks();
        return gins[block % gins.length].tryPut(world, peer, target.window(),
                ((long) world.rank() * blocks + block) * bytes, source.window(), block * bytes, bytes,
                last ? RemoteAction.increment(0) : RemoteAction.NONE, -1);
    }

    @Override
    void check(long bytes) {
        for (int from = 0; from < plan.ranks(); from++) {
            for (int block = 0; from != world.rank() && block < blocks; block++) {
                check(((long) from * blocks + block) * bytes, bytes, content(bytes, from, block),
                        " of block " + block + " of rank " + from);
            }
        }
    }
}
