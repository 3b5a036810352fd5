package org.millrace.rehearsal;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.millrace.MillraceException;
import org.millrace.Operation;
import org.millrace.net.link.LinkShape;
import org.millrace.rehearsal.RecordedRun.Call;
import org.millrace.rehearsal.RecordedRun.Kind;
import org.millrace.rehearsal.Simulation.Block;
import org.millrace.rehearsal.Simulation.Moment;
import org.millrace.rehearsal.Simulation.Program;
import org.millrace.rehearsal.Simulation.Rank;

/**
 * Forecast of the times of recorded operations on other numbers of ranks and over other links. The forecast assumes
 * that all ranks are alike, and that all hosts are alike. Therefore it simulates one host of a ring, and one rank for
 * each level of a tree.
 */
public final class Forecast {

    /** Maximum size in bytes of an all-reduce that two ranks of the engine perform by an exchange of their data. */
    private static final long MAX_EXCHANGED = 16 << 10;
    private static final int SLICES = 4;
    /**
     * Divisor of the slot size. The quotient is the size of the longest chunk that is sent as one frame. A longer chunk
     * that fits into a slot is sent as two frames.
     */
    private static final int SMALL = 16;
    private static final int TREES = 2;

    /**
     * Predicted time of an operation, in nanoseconds. The time is the sum of latency, bandwidth, proxy and kernel, see
     * {@link Simulation.Moment}.
     *
     * @param calls      number of a rank's calls in the recording
     * @param recorded   median of the recorded times; 0 if unknown
     * @param time       time from the moment when the last rank begins until the moment when the last rank ends
     * @param stragglers average time that a rank waits until the last rank has begun
     */
    public record Row(Kind kind, String algorithm, int ranks, long calls, double recorded, double time, double latency,
            double bandwidth, double proxy, double kernel, double stragglers) {
    }

    private final RecordedRun run;
    private final Costs costs;
    private final LinkShape link;
    private final int perHost;

    /**
     * @param link    link of each rank to other hosts
     * @param perHost number of ranks of a host
     */
    public Forecast(RecordedRun run, LinkShape link, int perHost) {
        this(run, Costs.of(run), link, perHost);
    }

    Forecast(RecordedRun run, Costs costs, LinkShape link, int perHost) {
        this.run = run;
        this.costs = costs;
        this.link = link;
        this.perHost = perHost;
        if (!link.jitter().isZero() || link.down()) {
            throw new MillraceException(
                    "a link that is simulated has a rate, a delay and a loss; jitter and down have no"
                            + " meaning there: leave them out, or use millrace replay");
        }
    }

    /** {@return a line of text with the costs that were measured in the recording} */
    public String basis() {
        double most = costs.slotBytes();
        return String.format(Locale.ROOT,
                "a frame of 0 B, and of %.0f KiB: on its way %.1f and %.1f us, of which %.1f and %.1f occupy the proxy; in a"
                        + " kernel %.1f and %.1f us, of which %.1f and %.1f occupy it; %d channels, %d proxies",
                most / 1024, costs.wire().all().of(0) / 1e3, costs.wire().all().of(most) / 1e3,
                costs.wire().work(0) / 1e3, costs.wire().work(most) / 1e3, costs.kernel().all().of(0) / 1e3,
                costs.kernel().all().of(most) / 1e3, costs.kernel().work(0) / 1e3, costs.kernel().work(most) / 1e3,
                costs.channels(), costs.proxies());
    }

    /**
     * {@return the forecast of each recorded operation in a group of {@code ranks} ranks} An operation with several
     * algorithms has a row for each algorithm.
     */
    public List<Row> rows(int ranks) {
        if (ranks < 2 || ranks > perHost && ranks % perHost != 0) {
            throw new MillraceException(
                    ranks + " ranks are not a multiple of " + perHost + " (--ranks-per-host), or fewer than 2");
        }
        Map<Kind, long[]> times = RecordedRun.times(run.calls());
        List<Row> rows = new ArrayList<>();
        kinds().forEach((kind, calls) -> {
            double recorded = RecordedRun
                    .median(times.getOrDefault(kind.name().equals("alltoall") || kind.name().equals("sendrecv")
                            ? new Kind(RecordedRun.SEND, kind.bytes())
                            : kind, new long[0]));
            add(rows, kind, ranks, "ring", calls, recorded);
            if (kind.name().equals(Operation.ALL_REDUCE.label()) && ranks > 2) {
                add(rows, kind, ranks, "tree", calls, recorded);
            }
        });
        return rows;
    }

    private void add(List<Row> rows, Kind kind, int ranks, String algorithm, long calls, double recorded) {
        Simulation simulation = new Simulation(costs, link);
        String name = kind.name();
        if (algorithm.equals("tree")) {
            tree(simulation, kind.bytes(), ranks);
        } else if (name.equals(Operation.ALL_TO_ALL.label()) || name.equals(Operation.SEND_RECEIVE.label())) {
            exchange(simulation, kind, ranks);
        } else if (name.equals(Operation.BROADCAST.label()) || name.equals(Operation.REDUCE.label())) {
            chain(simulation, kind.bytes(), ranks);
        } else {
            ring(simulation, kind, ranks);
        }
        Moment end = simulation.run();
        boolean isDirect = name.equals(Operation.ALL_TO_ALL.label()) || name.equals(Operation.SEND_RECEIVE.label());
        rows.add(new Row(kind, isDirect ? "direct" : algorithm, ranks, calls, recorded, end.time(), end.latency(),
                end.bandwidth(), end.proxy(), end.kernel(), costs.stragglers(ranks)));
    }

    /**
     * Counts the calls of the rank with the most calls. Returns the number of calls for each kind of operation. The
     * sends and receives of one kernel count as one operation. The operation is an all-to-all if the kernel sends to
     * all other ranks, otherwise a transfer with one rank.
     */
    private Map<Kind, Long> kinds() {
        List<Call> most = new ArrayList<>();
        for (Map<Integer, List<Call>> ranks : run.byRank().values()) {
            for (List<Call> calls : ranks.values()) {
                most = calls.size() > most.size() ? calls : most;
            }
        }
        Map<Kind, Long> kinds = new TreeMap<>();
        Map<Long, List<Call>> launches = new TreeMap<>();
        for (Call call : most) {
            if (!call.isTransfer()) {
                if (call.bytes() > 0) {
                    kinds.merge(call.what(), 1L, Long::sum);
                }
            } else if (call.kind().equals(RecordedRun.SEND) && call.peer() != call.group().rank()) {
                launches.computeIfAbsent(call.launch() < 0 ? -1 - call.number() : call.launch(),
                        launch -> new ArrayList<>()).add(call);
            }
        }
        for (List<Call> sends : launches.values()) {
            boolean all = sends.size() > 1 && sends.size() >= sends.getFirst().group().size() - 1;
            kinds.merge(new Kind(all ? Operation.ALL_TO_ALL.label() : Operation.SEND_RECEIVE.label(),
                    sends.getFirst().bytes()), 1L, Long::sum);
        }
        return kinds;
    }

    /**
     * Program of a block in a ring.
     *
     * @param rounds number of times that the block goes through all steps of the ring
     * @param local  whether the next rank is on the same host
     */
    private record RingProgram(long rounds, int steps, int slices, boolean local) implements Program {

        @Override
        public long tasks() {
            return rounds * steps * slices;
        }

        @Override
        public long needed(long task) {
            long inRound = task % ((long) steps * slices);
            return task / ((long) steps * slices) * (steps - 1) * slices + Math.max(0, inRound - slices + 1);
        }

        @Override
        public boolean sends(long task) {
            return task % ((long) steps * slices) < (long) (steps - 1) * slices;
        }

        @Override
        public boolean local(long task) {
            return local;
        }
    }

    private void ring(Simulation simulation, Kind kind, int ranks) {
        boolean reducesAll = kind.name().equals(Operation.ALL_REDUCE.label());
        boolean exchanges = costs.exchanges() && reducesAll && ranks == 2 && kind.bytes() <= MAX_EXCHANGED;
        int steps = exchanges ? 2 : reducesAll ? 2 * ranks - 1 : ranks;
        double perRank = reducesAll && !exchanges ? (double) kind.bytes() / ranks : kind.bytes();
        double chunk = perRank / costs.channels();
        int slices = chunk <= (double) costs.slotBytes() / SMALL ? 1 : chunk <= costs.slotBytes() ? 2 : SLICES;
        long rounds = Math.max(1, (long) Math.ceil(chunk / (SLICES * costs.slotBytes())));
        int folded = Math.min(perHost, ranks);
        Rank[] of = new Rank[folded];
        Block[][] blocks = new Block[folded][costs.channels()];
        for (int rank = 0; rank < folded; rank++) {
            of[rank] = new Rank(costs.proxies());
            boolean local = folded > 1 && (rank < folded - 1 || ranks <= perHost);
            for (int channel = 0; channel < costs.channels(); channel++) {
                blocks[rank][channel] = simulation.new Block(of[rank], new RingProgram(rounds, steps, slices, local),
                        chunk / rounds / slices, 1, 1);
            }
        }
        for (int rank = 0; rank < folded; rank++) {
            for (int channel = 0; channel < costs.channels(); channel++) {
                blocks[rank][channel].sendTo(blocks[(rank + 1) % folded][channel]);
            }
        }
    }

    /**
     * Program of a block of a tree or chain. Each task receives a frame, sends a frame, or forwards a received frame.
     */
    private record PipeProgram(long tasks, boolean receives, boolean sends, boolean local) implements Program {

        @Override
        public long needed(long task) {
            return receives ? task + 1 : 0;
        }

        @Override
        public boolean sends(long task) {
            return sends;
        }

        @Override
        public boolean local(long task) {
            return local;
        }
    }

    private long frames(double bytes) {
        return Math.max(1, (long) Math.ceil(bytes / costs.slotBytes()));
    }

    private void chain(Simulation simulation, double bytes, int ranks) {
        double share = bytes / costs.channels();
        long frames = frames(share);
        Block[] before = new Block[costs.channels()];
        for (int rank = 0; rank < ranks; rank++) {
            Rank of = new Rank(costs.proxies());
            for (int channel = 0; channel < costs.channels(); channel++) {
                boolean local = (rank + 1) % perHost != 0;
                Block made = simulation.new Block(of, new PipeProgram(frames, rank > 0, rank < ranks - 1, local),
                        share / frames, 1, 1);
                if (rank > 0) {
                    before[channel].sendTo(made);
                }
                before[channel] = made;
            }
        }
    }

    /**
     * Adds two trees to a simulation, each with half of the channels and of the data. A rank with children in one tree
     * is a leaf of the other tree. Therefore one simulated rank, with its proxies and its network line, represents both
     * the leaf and the parent of the leaf. Each simulated rank between the root and this parent has a further block. In
     * this block, the rank is a leaf of the other tree and sends its data up.
     */
    private void tree(Simulation simulation, double bytes, int ranks) {
        int channels = Math.max(TREES, costs.channels()) / TREES;
        double share = bytes / TREES / channels;
        long frames = frames(share);
        int depth = Integer.SIZE - 1 - Integer.numberOfLeadingZeros(ranks);
        Rank[] of = new Rank[depth + 1];
        for (int level = 0; level <= depth; level++) {
            of[level] = level == depth && depth > 1 ? of[depth - 1] : new Rank(costs.proxies());
        }
        for (int channel = 0; channel < channels; channel++) {
            Block[] up = new Block[depth + 1];
            Block[] down = new Block[depth + 1];
            for (int level = 0; level <= depth; level++) {
                boolean local = isLocal(depth - level);
                boolean leaf = level == depth;
                int children = level == 0 ? 1 : 2; // The root has one child, and all other inner ranks have two.
                if (level > 0) {
                    up[level] = simulation.new Block(of[level], new PipeProgram(frames, !leaf, true, local),
                            share / frames, leaf ? 1 : 2, 1);
                    if (!leaf && level < depth - 1) { // This rank is also a leaf of the other tree.
                        simulation.new Block(of[level], new PipeProgram(frames, false, true, false), share / frames, 1,
                                1);
                    }
                }
                down[level] = simulation.new Block(of[level],
                        new PipeProgram(frames, true, !leaf, isLocal(depth - level - 1)), share / frames, 1, children);
            }
            for (int level = 0; level <= depth; level++) {
                if (level > 0) {
                    up[level].sendTo(level == 1 ? down[0] : up[level - 1]);
                    down[level - 1].sendTo(down[level]);
                }
            }
        }
    }

    /**
     * Returns whether the parent of a rank in a tree is on the same host.
     *
     * @param zeros number of trailing zeros of the rank's number in binary
     */
    private boolean isLocal(int zeros) {
        return 2L << zeros < perHost;
    }

    private void exchange(Simulation simulation, Kind kind, int ranks) {
        boolean all = kind.name().equals(Operation.ALL_TO_ALL.label());
        int recordedRanks = run.calls().stream().mapToInt(call -> call.group().size()).max().orElse(ranks);
        int peers = all ? ranks - 1 : 1;
        int near = all ? Math.min(perHost, ranks) - 1 : ranks <= perHost ? 1 : 0;
        double bytes = all ? (double) kind.bytes() * recordedRanks / ranks : kind.bytes();
        long frames = frames(bytes);
        Block block = simulation.new Block(new Rank(costs.proxies()), new Program() {
            @Override
            public long tasks() {
                return 2 * peers * frames;
            }

            @Override
            public long needed(long task) {
                return Math.max(0, task - peers * frames + 1);
            }

            @Override
            public boolean sends(long task) {
                return task < peers * frames;
            }

            @Override
            public boolean local(long task) {
                return task < near * frames;
            }
        }, bytes / frames, 1, 1);
        block.sendTo(block);
    }

    /**
     * {@return total time of a rank's operations in nanoseconds} Each operation counts with the shortest time among its
     * algorithms.
     */
    public static double total(List<Row> rows) {
        Map<Kind, Double> best = new HashMap<>();
        for (Row row : rows) {
            best.merge(row.kind(), row.calls() * (row.time() + row.stragglers()), Math::min);
        }
        return best.values().stream().mapToDouble(Double::doubleValue).sum();
    }
}
