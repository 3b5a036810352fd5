package org.millrace.collnet.aggregator;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.agent.Agent;
import org.millrace.collnet.aggregator.AggregatorFrame.Function;
import org.millrace.device.arithmetic.ElementKernel;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.PeerClosedException;

/**
 * A group of ranks, all connected, for which this process reduces. Nothing waits: a rank that is late holds up the
 * pieces that it has not given, and no others. A group whose ranks have all left is over, and so is one that has lost a
 * rank: the others are told which.
 */
final class AggregatorGroup implements Agent {

    private static final Logger LOG = LogManager.getLogger(AggregatorGroup.class);
    /** How long ranks have to hear why a group ends. */
    private static final long FAREWELL_NANOS = 2_000_000_000L;
    private static final long ALIGNMENT = 64;

    private final String name;
    private final int ranks;
    private final FrameSender[] senders;
    private final FrameReceiver[] receivers;
    private final Arena arena = Arena.ofShared();
    private final MemoryRegion scratch;
    private final MemoryRegion text;
    private final AggregatedPiece[] pieces = new AggregatedPiece[AggregatorFrame.PIECES];
    private final FrameHeader header = new FrameHeader();
    private final @Nullable ElementKernel[][] kernels =
            new ElementKernel[DataType.values().length][ReduceOp.BuiltIn.values().length];
    /** Next piece of each rank. */
    private final long[] next;
    private final long[] offered;
    /** What was accepted and has not arrived, by rank: places of pieces, oldest first. */
    private final int[][] accepted;
    private final long[] acceptedCount;
    private final long[] arrivedCount;
    private final boolean[] left;
    private long done;
    private long reduced;
    /** When there is nothing more to say; 0 as long as all is well. */
    private long endsAt;
    private volatile boolean over;

    AggregatorGroup(String name, Network network, FrameSender[] senders, FrameReceiver[] receivers) {
        this.name = name;
        this.ranks = senders.length;
        this.senders = senders;
        this.receivers = receivers;
        long place = ranks * AggregatorFrame.LONGEST_PIECE;
        scratch = network.register(arena.allocate(AggregatorFrame.PIECES * place, ALIGNMENT));
        text = network.register(arena.allocate(AggregatorFrame.TEXT_BYTES, ALIGNMENT));
        for (int i = 0; i < pieces.length; i++) {
            pieces[i] = new AggregatedPiece(i * place, ranks);
        }
        next = new long[ranks];
        offered = new long[ranks];
        accepted = new int[ranks][AggregatorFrame.PIECES];
        acceptedCount = new long[ranks];
        arrivedCount = new long[ranks];
        left = new boolean[ranks];
    }

    @Override
    public String name() {
        return name;
    }

    /** Whether there is nothing more to do. Any thread. */
    boolean isOver() {
        return over;
    }

    @Override
    public int doWork() {
        if (over) {
            return 0;
        }
        int work = 0;
        for (int rank = 0; rank < ranks; rank++) {
            work += left[rank] ? 0 : exchange(rank);
        }
        if (endsAt != 0) {
            over = System.nanoTime() - endsAt > 0 || allToldOrLeft();
            return work;
        }
        for (long number = done; number < done + pieces.length; number++) {
            work += advance(piece(number), number);
        }
        while (piece(done).combined && isSent(piece(done))) {
            piece(done).clear();
            done++;
            work++;
        }
        over = allLeft();
        return work;
    }

    private AggregatedPiece piece(long number) {
        return pieces[(int) (number % pieces.length)];
    }

    private int exchange(int rank) {
        int work = 0;
        try {
            work += senders[rank].progress();
            work += receivers[rank].progress();
            FrameHeader said = receivers[rank].poll();
            while (endsAt == 0 && said != null && accept(rank, said)) {
                work++;
                said = receivers[rank].poll();
            }
            while (arrivedCount[rank] < receivers[rank].framesCompleted() - 1) { // the first was its hello
                pieces[accepted[rank][(int) (arrivedCount[rank]++ % pieces.length)]].arrivals++;
                work++;
            }
        } catch (PeerClosedException goodbye) {
            leave(rank, next[rank] > done || isMissed(rank), goodbye);
        } catch (ConnectionException lost) {
            leave(rank, true, lost);
        }
        return work;
    }

    /** Whether others have begun what the rank has not given. */
    private boolean isMissed(int rank) {
        for (long number = next[rank]; number < done + pieces.length; number++) {
            if (piece(number).first >= 0 && number >= done) {
                return true;
            }
        }
        return false;
    }

    private void leave(int rank, boolean missed, ConnectionException why) {
        left[rank] = true;
        if (missed && endsAt == 0) {
            end(AggregatorFrame.LOST, "rank " + rank + " is lost: " + why.getMessage());
        }
    }

    /** Gives a contribution its place; false if there is none yet. */
    private boolean accept(int rank, FrameHeader said) {
        long number = said.word(AggregatorFrame.SEQUENCE);
        if (number != next[rank] || !AggregatorFrame.isPlausible(said, ranks)) {
            end(AggregatorFrame.LOST, "rank " + rank + " sent what no rank sends: piece " + number + " and not "
                    + next[rank] + ", what " + Long.toHexString(said.word(AggregatorFrame.WHAT)));
            return false;
        }
        if (number >= done + pieces.length) {
            return false;
        }
        AggregatedPiece piece = piece(number);
        long what = said.word(AggregatorFrame.WHAT);
        long bytes = said.word(AggregatorFrame.BYTES);
        long offset = said.word(AggregatorFrame.WINDOW_OFFSET);
        long bytesPerRank = said.word(AggregatorFrame.BYTES_PER_RANK);
        if (piece.first < 0) {
            piece.first = rank;
            piece.what = what;
            piece.bytes = bytes;
            piece.offset = offset;
            piece.bytesPerRank = bytesPerRank;
        } else if (what != piece.what || bytes != piece.bytes || offset != piece.offset
                || bytesPerRank != piece.bytesPerRank) {
            end(AggregatorFrame.MISMATCH, "the ranks disagree: rank " + piece.first + " asks for "
                    + AggregatorFrame.describe(piece.what, piece.offset, piece.bytes, piece.bytesPerRank)
                    + ", and rank " + rank + " for " + AggregatorFrame.describe(what, offset, bytes, bytesPerRank)
                    + ". All ranks must call the same operations in the same order");
            return false;
        }
        Function function = AggregatorFrame.function(what);
        if (said.payloadBytes() != AggregatorFrame.contributionBytes(function, offset, bytes, bytesPerRank, rank)) {
            end(AggregatorFrame.LOST, "rank " + rank + " gives " + said.payloadBytes() + " bytes of "
                    + AggregatorFrame.describe(what, offset, bytes, bytesPerRank));
            return false;
        }
        receivers[rank].accept(scratch,
                function == Function.ALL_GATHER
                        ? piece.at(0) + AggregatorFrame.partBegin(offset, bytes, bytesPerRank, rank)
                        : piece.at(rank));
        accepted[rank][(int) (acceptedCount[rank]++ % pieces.length)] = (int) (number % pieces.length);
        next[rank]++;
        return true;
    }

    private int advance(AggregatedPiece piece, long number) {
        if (piece.first < 0) {
            return 0;
        }
        int work = 0;
        if (!piece.combined && piece.arrivals == ranks) {
            combine(piece);
            piece.combined = true;
            reduced++;
            work++;
        }
        while (piece.combined && piece.resultsOffered < ranks && offer(piece, number, piece.resultsOffered)) {
            piece.resultsOffered++;
            work++;
        }
        return work;
    }

    /** In the order of ranks, so that everybody always gets the same bits. */
    private void combine(AggregatedPiece piece) {
        if (AggregatorFrame.function(piece.what) == Function.ALL_GATHER) {
            return; // each part came to where it belongs
        }
        DataType type = AggregatorFrame.type(piece.what);
        ReduceOp.BuiltIn op = AggregatorFrame.op(piece.what);
        ElementKernel kernel = kernels[type.code()][op.code()];
        if (kernel == null) {
            kernel = ElementKernel.of(type, op, ranks);
            kernels[type.code()][op.code()] = kernel;
        }
        MemorySegment memory = scratch.segment();
        for (int rank = 1; rank < ranks; rank++) {
            kernel.reduce(memory, piece.at(rank), memory, piece.at(0), memory, piece.at(0), piece.bytes / type.bytes(),
                    false);
        }
    }

    private boolean offer(AggregatedPiece piece, long number, int rank) {
        if (left[rank]) {
            return true;
        }
        Function function = AggregatorFrame.function(piece.what);
        header.word(AggregatorFrame.SEQUENCE, number);
        header.word(AggregatorFrame.WHAT, AggregatorFrame.withKind(piece.what, AggregatorFrame.RESULT));
        header.word(AggregatorFrame.BYTES, piece.bytes);
        header.word(AggregatorFrame.WINDOW_OFFSET, piece.offset);
        header.word(AggregatorFrame.BYTES_PER_RANK, piece.bytesPerRank);
        header.payloadBytes(AggregatorFrame.resultBytes(function, piece.offset, piece.bytes, piece.bytesPerRank, rank));
        long from = function == Function.REDUCE_SCATTER
                ? AggregatorFrame.partBegin(piece.offset, piece.bytes, piece.bytesPerRank, rank)
                : 0;
        if (!senders[rank].offer(header, scratch, piece.at(0) + from)) {
            return false;
        }
        piece.offeredUpTo[rank] = ++offered[rank];
        return true;
    }

    private boolean isSent(AggregatedPiece piece) {
        for (int rank = 0; rank < ranks; rank++) {
            if (!left[rank]
                    && (piece.resultsOffered <= rank || senders[rank].framesCompleted() < piece.offeredUpTo[rank])) {
                return false;
            }
        }
        return true;
    }

    private boolean allLeft() {
        for (boolean each : left) {
            if (!each) {
                return false;
            }
        }
        return true;
    }

    /** Tells all ranks why nothing follows. */
    private void end(int kind, String why) {
        LOG.warn("{} ends: {}", name, why);
        byte[] bytes = why.getBytes(StandardCharsets.UTF_8);
        byte[] fitting = Arrays.copyOf(bytes, Math.min(bytes.length, AggregatorFrame.TEXT_BYTES));
        MemorySegment.copy(fitting, 0, text.segment(), ValueLayout.JAVA_BYTE, 0, fitting.length);
        endsAt = System.nanoTime() + FAREWELL_NANOS | 1; // 0 stands for none
        for (int rank = 0; rank < ranks; rank++) {
            header.word(AggregatorFrame.SEQUENCE, 0);
            header.word(AggregatorFrame.WHAT, AggregatorFrame.withKind(0, kind));
            header.payloadBytes(fitting.length);
            try {
                if (!left[rank] && senders[rank].offer(header, text, 0)) {
                    offered[rank]++;
                }
            } catch (ConnectionException alsoLost) {
                left[rank] = true;
            }
        }
    }

    private boolean allToldOrLeft() {
        for (int rank = 0; rank < ranks; rank++) {
            if (!left[rank] && senders[rank].framesCompleted() < offered[rank]) {
                return false;
            }
        }
        return true;
    }

    @Override
    public void onFailure(Throwable failure) {
        LOG.error("{} has failed", name, failure);
        over = true;
    }

    /** Ends the connections and frees the memory; the agent must have stopped. */
    void close() {
        for (int rank = 0; rank < ranks; rank++) {
            senders[rank].close();
            receivers[rank].close();
        }
        scratch.close();
        text.close();
        arena.close();
        LOG.info("{} is over: {} pieces for {} ranks", name, reduced, ranks);
    }
}
