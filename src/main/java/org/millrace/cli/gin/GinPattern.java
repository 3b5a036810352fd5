package org.millrace.cli.gin;

import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Locale;
import org.millrace.cli.base.ResultTable;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.RemoteAction;
import org.millrace.engine.GinRank;

/** A pattern of GIN operations that can be measured. */
enum GinPattern {
    /** Rank 0 puts with a signal, and rank 1 answers with a put and a signal. */
    PUT,
    /** Rank 0 sends a signal, and rank 1 answers with a signal. */
    SIGNAL,
    /** Every rank puts a part to each rank. */
    ALLTOALL,
    /** Many blocks put at the same time. */
    FLOOD;

    /** Runs one rank's part. Rank 0 prints the results. */
    void run(GinPlan plan, GinRank rank, Arena arena, ResultTable table) {
        switch (this) {
            case PUT, SIGNAL -> new PingPong(plan, rank, arena, table).run();
            case ALLTOALL -> new AllToAll(plan, rank, arena, table).run();
            case FLOOD -> new Flood(plan, rank, arena, table).run();
        }
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Every rank puts a part of its window to each rank, including itself. The puts are spread over the contexts. */
    static final class AllToAll extends GinMeasurement {

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
                // All puts to a rank use one context. The index of the context is the rank's number modulo the number
                // of contexts.
                HostGin mine = gins[world.rank() % gins.length];
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

    /** Ranks 0 and 1 take turns to put, or to send signals without data. */
    static final class PingPong extends GinMeasurement {

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

        /** Does nothing. The first signal synchronizes the ranks. */
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
                    gins[0].put(world, peer, target.window(), 0, source.window(), 0, bytes, RemoteAction.increment(0),
                            -1);
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

        /**
         * Sends one signal in each direction. Rank 0 therefore puts again only after rank 1 has checked the received
         * data.
         */
        @Override
        void checked() {
            rounds(0, 1);
        }
    }

    /**
     * Many blocks put to all other ranks, whenever the queues have room. This load resembles a token exchange: the rate
     * of descriptors matters, and not their latency. One thread runs all blocks of a rank, one after the other. Each
     * block has a context and its own part of every window. The last put of a block to a rank carries a signal.
     */
    static final class Flood extends GinMeasurement {

        private final int blocks;
        private final int peers;
        /** Number of posted descriptors, by block. */
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
                    // Gives up the core, because the agent's thread may have no other core.
                    Thread.yield();
                }
            }
            signals += peers;
            for (int block = 0; block < blocks; block++) {
                int context = block % gins.length;
                // The blocks of a context share one signal. The first block of a context waits for the signals of all
                // its blocks.
                if (block < gins.length) {
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
}
