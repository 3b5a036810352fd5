package org.millrace.rehearsal;

import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;
import org.millrace.net.link.LinkShape;

/**
 * Simulates kernels that send frames to each other through the proxies and network lines of their ranks. One queue
 * holds all events, ordered by time. Events with equal times are ordered by their creation. A time is a sum of
 * components. The time of an event is the time of its cause, plus durations that are added to individual components.
 * The components of the final time therefore describe the critical path.
 */
final class Simulation {

    /** Size of a frame's header on a line in bytes, as {@code MILLRACE_LINK} counts it. */
    private static final int HEADER_BYTES = 64;
    private static final double NANOS = 1e9;

    /**
     * A time, as the sum of its components in nanoseconds.
     *
     * @param latency   latency of links
     * @param bandwidth time that frames wait for lines and are transmitted over them
     * @param proxy     time that frames wait for proxies and networks and are processed by them
     * @param kernel    time that kernels process frames
     */
    record Moment(double latency, double bandwidth, double proxy, double kernel) {

        static final Moment BEGIN = new Moment(0, 0, 0, 0);

        double time() {
            return latency + bandwidth + proxy + kernel;
        }

        Moment later(double moreLatency, double moreBandwidth, double moreProxy, double moreKernel) {
            return new Moment(latency + moreLatency, bandwidth + moreBandwidth, proxy + moreProxy, kernel + moreKernel);
        }
    }

    /** Program of a block of a kernel: its tasks in their order. Each task needs at most one new frame. */
    interface Program {

        long tasks();

        /** Returns the number of frames that must have arrived at the block before the block can run a task. */
        long needed(long task);

        boolean sends(long task);

        /**
         * Returns whether the frame that a task sends stays on the host. The frame then needs neither proxy nor line.
         */
        boolean local(long task);
    }

    /** A block of a kernel that runs on a rank. */
    final class Block {

        private final Program program;
        private final double bytes;
        private final double kernelNanos;
        private final int copies;
        private final Rank rank;
        private final List<Block> targets = new ArrayList<>();
        private long task;
        private long arrived;
        private Moment free = Moment.BEGIN;

        /**
         * @param bytes  size of each frame in bytes
         * @param inputs number of frames that a task receives, each from a different rank
         * @param copies number of frames that a task sends, each to a different rank
         */
        Block(Rank rank, Program program, double bytes, int inputs, int copies) {
            this.rank = rank;
            this.program = program;
            this.bytes = bytes;
            this.copies = copies;
            kernelNanos = costs.kernel().work(bytes) * inputs;
            blocks.add(this);
        }

        void sendTo(Block target) {
            targets.add(target);
        }

        /** Runs the next tasks, up to the first task that still lacks a frame. */
        private void run(Moment now) {
            while (task < program.tasks() && program.needed(task) <= arrived) {
                Moment begin = free.time() >= now.time() ? free : now;
                free = begin.later(0, 0, 0, kernelNanos);
                if (program.sends(task)) {
                    boolean local = program.local(task);
                    queue.add(new Event(free.later(0, 0, 0, costs.kernel().after(bytes)), made++, this,
                            local ? Stage.ARRIVES : Stage.PROXY));
                }
                task++;
            }
        }
    }

    /** A rank, with the proxies and the line that its blocks share. */
    static final class Rank {

        private final double[] proxiesFree;
        private double lineFree;

        /** @param proxies number of threads that serve the rank's connections */
        Rank(int proxies) {
            proxiesFree = new double[proxies];
        }

        /**
         * Occupies the proxy that becomes free first. The proxy's work begins at {@code from}, or when the proxy
         * becomes free, whichever is later.
         *
         * @return the end of the work
         */
        private double proxy(double from, double nanos) {
            int first = 0;
            for (int i = 1; i < proxiesFree.length; i++) {
                first = proxiesFree[i] < proxiesFree[first] ? i : first;
            }
            proxiesFree[first] = Math.max(from, proxiesFree[first]) + nanos;
            return proxiesFree[first];
        }
    }

    private enum Stage {
        PROXY, LINE, ARRIVES
    }

    private record Event(Moment moment, long number, Block from, Stage stage) implements Comparable<Event> {

        @Override
        public int compareTo(Event other) {
            int byTime = Double.compare(moment.time(), other.moment.time());
            return byTime != 0 ? byTime : Long.compare(number, other.number);
        }
    }

    private final Costs costs;
    private final LinkShape link;
    private final List<Block> blocks = new ArrayList<>();
    private final PriorityQueue<Event> queue = new PriorityQueue<>();
    private long made;

    Simulation(Costs costs, LinkShape link) {
        this.costs = costs;
        this.link = link;
    }

    /** {@return the time at which the last block ends, with the time's components} */
    Moment run() {
        blocks.forEach(block -> block.run(Moment.BEGIN));
        for (Event event = queue.poll(); event != null; event = queue.poll()) {
            handle(event);
        }
        Moment end = Moment.BEGIN;
        for (Block block : blocks) {
            if (block.task < block.program.tasks()) {
                throw new IllegalStateException("a block waits for a frame that no block sends");
            }
            end = block.free.time() > end.time() ? block.free : end;
        }
        return end;
    }

    private void handle(Event event) {
        Block from = event.from;
        Moment now = event.moment;
        double time = now.time();
        switch (event.stage) {
            case PROXY -> {
                double handled = from.rank.proxy(time, from.copies * costs.wire().work(from.bytes));
                queue.add(new Event(now.later(0, 0, handled - time, 0), made++, from, Stage.LINE));
            }
            case LINE -> {
                from.rank.lineFree =
                        Math.max(time, from.rank.lineFree) + from.copies * nanos(from.bytes, link.bitsPerSecond());
                double left = Math.max(from.rank.lineFree, time + nanos(from.bytes, link.bitsPerConnection()));
                queue.add(new Event(now.later(link.delay().toNanos(), left - time, costs.wire().after(from.bytes), 0),
                        made++, from, Stage.ARRIVES));
            }
            case ARRIVES -> from.targets.forEach(target -> {
                target.arrived++;
                target.run(now);
            });
        }
    }

    private static double nanos(double bytes, double bitsPerSecond) {
        return bitsPerSecond == 0 ? 0 : (bytes + HEADER_BYTES) * Byte.SIZE * NANOS / bitsPerSecond;
    }
}
