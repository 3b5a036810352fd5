package org.millrace.collnet;

import java.lang.foreign.Arena;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.Agent;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.PeerClosedException;

/**
 * One thread's part of a {@link MeshNetwork}. A piece is a range of a request's data that one aggregator processes as a
 * unit. The aggregator processes its pieces of each request in the order of their offsets, and has up to
 * {@value #PIECES} of them in flight. No method blocks. A peer may be slow, or may have made fewer requests than this
 * rank. Such a peer delays only the pieces that need a frame from it.
 *
 * <p>
 * The aggregator has {@value #PIECES} places, which are {@link MeshPiece} objects that hold the state of a piece. Two
 * pieces whose numbers differ by {@value #PIECES} use the same place. The newer piece gets the place when the older
 * piece is done. A frame is accepted when its piece has a place, even if the piece has not begun. On each connection,
 * the frames of older pieces come first. All frames that older pieces need from a rank therefore arrive before a frame
 * that waits for a place. The waiting frame thus always gets a place.
 */
final class MeshAggregator implements Agent {

    private static final int PIECES = 16;
    /**
     * Maximum number of accepted frames of one rank that have not arrived completely: a contribution and a result for
     * each piece.
     */
    private static final int ACCEPTED = 2 * PIECES;
    private static final int KIND_BIT = 1 << 16;

    private final MeshNetwork network;
    private final int index;
    private final int aggregators;
    private final int rank;
    private final @Nullable FrameSender[] senders;
    private final @Nullable FrameReceiver[] receivers;
    private final long[] offered;
    private final int[][] accepted;
    private final long[] acceptedCount;
    private final long[] arrivedCount;
    /**
     * Whether a rank has closed its connection, by rank. Such a rank has everything that it requested, and receives no
     * further frames. Frames that it sent before may still arrive.
     */
    private final boolean[] leaving;
    /**
     * For each rank, the exception that reported its closed connection; null while the rank may send further frames.
     */
    private final @Nullable PeerClosedException[] departed;
    private boolean anyDeparted;
    private final Arena arena = Arena.ofShared();
    private final MemoryRegion scratch;
    private final MeshPiece[] pieces = new MeshPiece[PIECES];
    private final FrameHeader header = new FrameHeader();
    private long begun;
    private long done;
    private long nextRequest;
    /** Number of begun pieces of the request {@link #nextRequest}. */
    private long begunOfRequest;
    private boolean failed;

    /**
     * @param index     index of this aggregator among the rank's aggregators
     * @param senders   senders to the aggregator with the same index on each rank, by rank; null for this rank
     * @param receivers receivers from the aggregator with the same index on each rank, by rank; null for this rank
     */
    MeshAggregator(MeshNetwork network, int index, int aggregators, int rank, Network frames,
            @Nullable FrameSender[] senders, @Nullable FrameReceiver[] receivers) {
        this.network = network;
        this.index = index;
        this.aggregators = aggregators;
        this.rank = rank;
        this.senders = senders;
        this.receivers = receivers;
        int ranks = senders.length;
        offered = new long[ranks];
        accepted = new int[ranks][ACCEPTED];
        acceptedCount = new long[ranks];
        arrivedCount = new long[ranks];
        leaving = new boolean[ranks];
        departed = new PeerClosedException[ranks];
        long place = MeshNetwork.MAX_PIECE_BYTES + ranks * MeshRequest.roundUp(1);
        scratch = frames.register(arena.allocate(PIECES * place, MeshRequest.roundUp(1)));
        for (int i = 0; i < PIECES; i++) {
            pieces[i] = new MeshPiece(rank, ranks, scratch, i * place, place);
        }
    }

    @Override
    public int doWork() {
        if (failed) {
            return 0;
        }
        int work = begin();
        for (int peer = 0; peer < senders.length; peer++) {
            if (peer != rank && departed[peer] == null) {
                work += exchange(peer);
            }
        }
        for (long number = done; number < begun; number++) {
            work += advance(place(number));
        }
        if (anyDeparted) {
            failIfDepartedAreMissed();
        }
        while (done < begun && isDone(place(done))) {
            MeshPiece piece = place(done);
            if (piece.last) {
                piece.request.pass();
            }
            piece.clear();
            done++;
            work++;
        }
        return work;
    }

    private MeshPiece place(long number) {
        return pieces[(int) (number % PIECES)];
    }

    /**
     * While places are free, begins this aggregator's pieces of the requests that this rank has made. Returns the
     * number of begun pieces.
     */
    private int begin() {
        int work = 0;
        long requested = network.requested();
        while (nextRequest < requested && begun - done < PIECES) {
            MeshRequest request = network.request(nextRequest);
            long all = request.pieces();
            // The first pieces of successive requests belong to different aggregators, so that short requests are
            // processed in parallel.
            long piece = Math.floorMod(index - nextRequest, (long) aggregators) + begunOfRequest * aggregators;
            if (piece >= all) {
                request.pass();
                nextRequest++;
                begunOfRequest = 0;
                continue;
            }
            boolean last = piece + aggregators >= all;
            place(begun).begin(request, piece * request.pieceBytes, begun, last);
            begun++;
            begunOfRequest = last ? 0 : begunOfRequest + 1;
            nextRequest += last ? 1 : 0;
            work++;
        }
        return work;
    }

    /**
     * Sends bytes to a peer, receives bytes from it, and accepts the frames that the peer sends. Returns the amount of
     * work.
     */
    private int exchange(int peer) {
        FrameReceiver receiver = receivers[peer];
        int work = leaving[peer] ? 0 : send(peer);
        try {
            work += receiver.progress();
            FrameHeader next = receiver.poll();
            while (next != null && accept(peer, receiver, next)) {
                work++;
                next = receiver.poll();
            }
        } catch (PeerClosedException closed) {
            leaving[peer] = true;
            departed[peer] = closed;
            anyDeparted = true;
        }
        while (arrivedCount[peer] < receiver.framesCompleted()) {
            int what = accepted[peer][(int) (arrivedCount[peer]++ % ACCEPTED)];
            int kind = (what & KIND_BIT) == 0 ? MeshFrame.CONTRIBUTION : MeshFrame.RESULT;
            pieces[what & ~KIND_BIT].arrived[kind][peer] = true;
            work++;
        }
        return work;
    }

    private int send(int peer) {
        try {
            return senders[peer].progress();
        } catch (PeerClosedException closed) {
            leaving[peer] = true;
            return 0;
        }
    }

    /**
     * Accepts a peer's frame, and selects the memory for its payload. Returns false if the frame belongs to a later
     * piece, and an older piece still uses the place of the later piece.
     */
    private boolean accept(int peer, FrameReceiver receiver, FrameHeader received) {
        long number = MeshFrame.sequence(received);
        int kind = MeshFrame.kind(received);
        MeshPiece piece = place(Math.max(0, number));
        boolean known = number >= done && number < done + PIECES;
        if (number < done || kind != MeshFrame.CONTRIBUTION && kind != MeshFrame.RESULT
                || known && (piece.accepted[kind][peer]
                        || !piece.begun && (kind == MeshFrame.RESULT || !piece.holds(received)))) {
            throw new ConnectionException("collective network, rank " + rank + ", " + receiver
                    + ": unexpected frame: piece " + number + " and not " + done + " or later, kind " + kind + ", "
                    + received.payloadBytes() + " bytes");
        }
        if (!known) {
            return false;
        }
        if (piece.begun) {
            piece.check(peer, received);
        } else {
            piece.keep(peer, received);
        }
        piece.accepted[kind][peer] = true;
        accepted[peer][(int) (acceptedCount[peer]++ % ACCEPTED)] =
                (int) (number % PIECES) | (kind == MeshFrame.RESULT ? KIND_BIT : 0);
        if (kind == MeshFrame.RESULT || !piece.goesToScratch()) {
            receiver.accept(piece.request.receive, piece.resultOffset(peer));
        } else {
            receiver.accept(scratch, piece.scratchPlace(received));
        }
        return true;
    }

    private int advance(MeshPiece piece) {
        int work = 0;
        while (piece.contributionsOffered < senders.length - 1
                && offer(piece, MeshFrame.CONTRIBUTION, piece.contributionsOffered)) {
            piece.contributionsOffered++;
            work++;
        }
        if (!piece.combined && piece.isComplete(MeshFrame.CONTRIBUTION)
                && (!piece.overwritesWhatItSends() || isSent(piece))) {
            piece.combine();
            work++;
        }
        while (piece.combined && piece.hasResults() && piece.resultsOffered < senders.length - 1
                && offer(piece, MeshFrame.RESULT, piece.resultsOffered)) {
            piece.resultsOffered++;
            work++;
        }
        return work;
    }

    /**
     * Offers a frame to another rank. The number of that rank is this rank's number + {@code behind} + 1, modulo the
     * number of ranks. Returns false if the connection accepts no frame now.
     */
    private boolean offer(MeshPiece piece, int kind, int behind) {
        int peer = (rank + 1 + behind) % senders.length;
        boolean result = kind == MeshFrame.RESULT;
        if ((result ? piece.rangeBytes(rank) : piece.contributionBytes(rank, peer)) == 0 || leaving[peer]) {
            return true;
        }
        piece.write(header, kind, peer);
        try {
            if (!senders[peer].offer(header, result ? piece.request.receive : piece.request.send,
                    result ? piece.resultOffset(rank) : piece.contributionOffset(peer))) {
                return false;
            }
        } catch (PeerClosedException closed) {
            leaving[peer] = true;
            return true;
        }
        piece.offeredUpTo[peer] = ++offered[peer];
        return true;
    }

    /** Returns whether all offered frames of a piece have left this rank's memory. */
    private boolean isSent(MeshPiece piece) {
        if (piece.contributionsOffered < senders.length - 1) {
            return false;
        }
        for (int peer = 0; peer < senders.length; peer++) {
            if (piece.offeredUpTo[peer] > 0 && !leaving[peer]
                    && senders[peer].framesCompleted() < piece.offeredUpTo[peer]) {
                return false;
            }
        }
        return true;
    }

    private boolean isDone(MeshPiece piece) {
        return piece.combined && piece.isComplete(MeshFrame.RESULT)
                && (!piece.hasResults() || piece.resultsOffered == senders.length - 1) && isSent(piece);
    }

    /**
     * Throws an exception if a departed rank has not sent a frame that this rank needs. A departed rank has everything
     * that it requested, so its departure is no failure if all its frames have arrived.
     */
    private void failIfDepartedAreMissed() {
        for (int peer = 0; peer < departed.length; peer++) {
            for (long number = done; departed[peer] != null && number < begun; number++) {
                if (place(number).lacks(MeshFrame.CONTRIBUTION, peer) || place(number).lacks(MeshFrame.RESULT, peer)) {
                    throw departed[peer];
                }
            }
        }
    }

    @Override
    public String name() {
        return "collnet-" + index;
    }

    @Override
    public void onFailure(Throwable failure) {
        failed = true;
        network.fail(failure);
    }

    /** Closes the connections and frees the memory. No thread may run the aggregator any more. */
    void close(boolean failedElsewhere) {
        if (!arena.scope().isAlive()) {
            return;
        }
        for (int peer = 0; peer < senders.length; peer++) {
            if (peer != rank) {
                if (failed || failedElsewhere) {
                    senders[peer].abort();
                } else {
                    senders[peer].close();
                }
                receivers[peer].close();
            }
        }
        scratch.close();
        arena.close();
    }
}
