package org.millrace.transport.collnet;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Consumer;
import org.millrace.DataType;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;
import org.millrace.agent.Agent;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.PeerClosedException;

/**
 * Reduces in a network's place. It takes one frame of each rank, combines them in the order of the ranks (so that every
 * run gives the same bits), and sends the result to all. Up to {@value CollectiveNetwork#REQUESTS} requests are under
 * way, each in a slot of its own; a rank that is further ahead waits in its connection.
 */
public final class Aggregator implements Agent, AutoCloseable {

    private static final int SLOTS = CollectiveNetwork.REQUESTS;

    private final List<FrameReceiver> receivers;
    private final List<FrameSender> senders;
    private final Reducer reducer;
    private final Consumer<? super Throwable> failure;
    private final long slotBytes;
    private final Arena arena = Arena.ofShared();
    private final MemoryRegion[] contributions;
    private final long[] accepted;
    private final long[] sent;
    private final boolean[] departed;
    private final long[] counts = new long[SLOTS];
    private final DataType[] types = new DataType[SLOTS];
    private final ReduceOp.BuiltIn[] ops = new ReduceOp.BuiltIn[SLOTS];
    private final FrameHeader header = new FrameHeader();
    private long reduced;
    private boolean failed;

    /**
     * An aggregator whose connections are made: those from and to every rank, by rank.
     *
     * @param slotBytes longest contribution
     * @param failure   learns why the aggregator stopped
     */
    public Aggregator(Network network, List<FrameReceiver> receivers, List<FrameSender> senders, long slotBytes,
            Reducer reducer, Consumer<? super Throwable> failure) {
        this.receivers = List.copyOf(receivers);
        this.senders = List.copyOf(senders);
        this.slotBytes = slotBytes;
        this.reducer = reducer;
        this.failure = failure;
        int ranks = receivers.size();
        contributions = new MemoryRegion[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            contributions[rank] = network.register(arena.allocate(SLOTS * slotBytes, Long.BYTES));
        }
        accepted = new long[ranks];
        sent = new long[ranks];
        departed = new boolean[ranks];
    }

    @Override
    public int doWork() {
        if (failed) {
            return 0;
        }
        int work = 0;
        long arrived = Long.MAX_VALUE;
        long freed = Long.MAX_VALUE;
        for (int rank = 0; rank < accepted.length; rank++) {
            work += departed[rank] ? 0 : deliver(rank);
            freed = Math.min(freed, senders.get(rank).framesCompleted());
        }
        for (int rank = 0; rank < accepted.length; rank++) {
            work += accept(rank, freed);
            arrived = Math.min(arrived, receivers.get(rank).framesCompleted());
        }
        while (reduced < arrived) {
            reduce((int) (reduced % SLOTS));
            reduced++;
            work++;
        }
        for (int rank = 0; rank < accepted.length; rank++) {
            work += send(rank);
        }
        return work;
    }

    private int deliver(int rank) {
        try {
            return senders.get(rank).progress();
        } catch (PeerClosedException goodbye) {
            depart(rank, goodbye);
            return 0;
        }
    }

    /** Gives a rank's frames their slots, those of which every rank has got the result. */
    private int accept(int rank, long freed) {
        if (departed[rank]) {
            return 0;
        }
        FrameReceiver receiver = receivers.get(rank);
        try {
            int work = receiver.progress();
            FrameHeader next = receiver.poll();
            while (next != null && accepted[rank] - freed < SLOTS) {
                AggregateHeader.check(next, accepted[rank], slotBytes, receiver);
                agree(rank, next);
                receiver.accept(contributions[rank], accepted[rank] % SLOTS * slotBytes);
                accepted[rank]++;
                work++;
                next = receiver.poll();
            }
            return work;
        } catch (PeerClosedException goodbye) {
            depart(rank, goodbye);
            return 0;
        }
    }

    /** A rank leaves that has all it asked for: nothing failed. */
    private void depart(int rank, PeerClosedException goodbye) {
        if (accepted[rank] != reduced) {
            throw goodbye;
        }
        departed[rank] = true;
    }

    /** The first rank says what a request is, and the others must say the same. */
    private void agree(int rank, FrameHeader said) {
        long sequence = accepted[rank];
        int slot = (int) (sequence % SLOTS);
        boolean first = true;
        for (int other = 0; other < accepted.length; other++) {
            first &= other == rank || accepted[other] <= sequence;
        }
        if (first) {
            counts[slot] = AggregateHeader.count(said);
            types[slot] = AggregateHeader.type(said);
            ops[slot] = AggregateHeader.op(said);
        } else if (counts[slot] != AggregateHeader.count(said) || types[slot] != AggregateHeader.type(said)
                || ops[slot] != AggregateHeader.op(said)) {
            throw new AggregatorException("the ranks disagree: rank " + rank + " gives the aggregator "
                    + AggregateHeader.count(said) + " " + AggregateHeader.type(said).label() + ", "
                    + AggregateHeader.op(said).label() + " for request " + sequence + "; another rank " + counts[slot]
                    + " " + types[slot].label() + ", " + ops[slot].label()
                    + ". All ranks must call the same operations in the same order.");
        }
    }

    /** Into the contribution of rank 0. */
    private void reduce(int slot) {
        MemorySegment result = contributions[0].segment();
        for (int rank = 1; rank < contributions.length; rank++) {
            reducer.reduce(types[slot], ops[slot], contributions[rank].segment(), slot * slotBytes, result,
                    slot * slotBytes, counts[slot]);
        }
    }

    private int send(int rank) {
        int work = 0;
        while (sent[rank] < reduced && !departed[rank]) {
            int slot = (int) (sent[rank] % SLOTS);
            AggregateHeader.write(header, sent[rank], counts[slot], types[slot], ops[slot]);
            if (!senders.get(rank).offer(header, contributions[0], slot * slotBytes)) {
                break;
            }
            sent[rank]++;
            work++;
        }
        return work;
    }

    @Override
    public String name() {
        return "aggregator";
    }

    @Override
    public void onFailure(Throwable thrown) {
        if (!failed) {
            failed = true;
            failure.accept(thrown);
        }
    }

    /** Closes the connections and frees the memory; the agent must have stopped. */
    @Override
    public void close() {
        if (arena.scope().isAlive()) {
            senders.forEach(FrameSender::close);
            receivers.forEach(FrameReceiver::close);
            List.of(contributions).forEach(MemoryRegion::close);
            arena.close();
        }
    }

    /** The arithmetic of an aggregator. */
    @FunctionalInterface
    public interface Reducer {

        /**
         * Combines elements: {@code into[i] = op(from[i], into[i])}; offsets are bytes.
         *
         * @param into what the ranks before it came to
         */
        void reduce(DataType type, ReduceOp.BuiltIn op, MemorySegment from, long fromOffset, MemorySegment into,
                long intoOffset, long count);
    }

    /** What ranks give to an aggregator does not fit together. */
    public static final class AggregatorException extends MillraceException {

        private static final long serialVersionUID = 1L;

        AggregatorException(String message) {
            super(message);
        }
    }

    /**
     * The words of a frame between a rank and an aggregator: {@code 0 sequence | 1 count | 2 type | 3 op}. They come
     * from another process, and are checked before they are believed.
     */
    static final class AggregateHeader {

        private static final int SEQUENCE = 0;
        private static final int COUNT = 1;
        private static final int TYPE = 2;
        private static final int OP = 3;
        private static final ReduceOp.BuiltIn[] OPS = ReduceOp.BuiltIn.values();

        private AggregateHeader() {}

        static void write(FrameHeader header, long sequence, long count, DataType type, ReduceOp.BuiltIn op) {
            header.word(SEQUENCE, sequence);
            header.word(COUNT, count);
            header.word(TYPE, type.code());
            header.word(OP, op.code());
            header.payloadBytes(count * type.bytes());
        }

        /** Throws if a frame is not the next one, or too long. */
        static void check(FrameHeader header, long sequence, long slotBytes, Object from) {
            long type = header.word(TYPE);
            long op = header.word(OP);
            boolean known = type >= 0 && type < DataType.values().length && op >= 0 && op < OPS.length;
            if (header.word(SEQUENCE) != sequence || !known || header.payloadBytes() > slotBytes
                    || header.word(COUNT) < 0 || header.word(COUNT) > slotBytes
                    || header.payloadBytes() != header.word(COUNT) * type(header).bytes()) {
                throw new ConnectionException("aggregator, " + from + ": unexpected frame: request "
                        + header.word(SEQUENCE) + " instead of " + sequence + ", type " + type + ", op " + op + ", "
                        + header.word(COUNT) + " elements in " + header.payloadBytes() + " bytes");
            }
        }

        static long count(FrameHeader header) {
            return header.word(COUNT);
        }

        static DataType type(FrameHeader header) {
            return DataType.ofCode((int) header.word(TYPE));
        }

        static ReduceOp.BuiltIn op(FrameHeader header) {
            return OPS[(int) header.word(OP)];
        }
    }
}
