package org.millrace.collnet;

import java.lang.foreign.MemorySegment;
import org.millrace.MismatchException;
import org.millrace.collnet.MeshRequest.Function;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;

/**
 * A piece of a request: the locations of its data, and its progress. An aggregator has a fixed number of pieces, which
 * it reuses in a cycle. Data for a piece may arrive before this rank has begun the piece. The data then waits in the
 * piece's scratch memory.
 *
 * <p>
 * A contribution is data from one rank for another rank. A result is reduced data from one rank for all ranks. Offsets
 * and lengths are in bytes. A range is a part of the piece, within 0 to {@link #bytes}.
 */
final class MeshPiece {

    /**
     * Maximum size in bytes of a piece of an all-reduce with one hop. Up to this size, one hop takes less time than two
     * hops, although it moves more data.
     */
    private static final long EXCHANGED_BYTES = 32 << 10;

    private final int rank;
    private final int ranks;
    private final MemoryRegion scratch;
    private final long scratchBase;
    private final long scratchBytes;

    /**
     * Whether a frame was accepted, by kind and rank. {@link #arrived} shows whether the frame has arrived completely.
     */
    final boolean[][] accepted;
    final boolean[][] arrived;
    /** Header words and payload length of the contributions that arrived before the piece was begun, by rank. */
    private final long[][] early;
    /**
     * For each rank: number of the last frame of this piece that was offered to the rank. All frames that the
     * aggregator offered to the rank are numbered from 1. The value is 0 if no frame of this piece was offered.
     */
    final long[] offeredUpTo;

    MeshRequest request = new MeshRequest();
    boolean begun;
    private boolean exchanged;
    private long sequence;
    private long base;
    long bytes;
    /** Whether this is the aggregator's last piece of the request. */
    boolean last;
    boolean combined;
    int contributionsOffered;
    int resultsOffered;

    MeshPiece(int rank, int ranks, MemoryRegion scratch, long scratchBase, long scratchBytes) {
        this.rank = rank;
        this.ranks = ranks;
        this.scratch = scratch;
        this.scratchBase = scratchBase;
        this.scratchBytes = scratchBytes;
        accepted = new boolean[2][ranks];
        arrived = new boolean[2][ranks];
        early = new long[ranks][FrameHeader.WORDS + 1];
        offeredUpTo = new long[ranks];
    }

    /** Begins the piece, at an offset in the window of a request that this rank has made. */
    void begin(MeshRequest of, long offset, long number, boolean lastOfRequest) {
        request = of;
        sequence = number;
        base = offset;
        bytes = Math.min(of.pieceBytes, of.windowBytes - offset);
        last = lastOfRequest;
        exchanged = of.function == Function.ALL_REDUCE && bytes <= EXCHANGED_BYTES
                && (ranks - 1) * MeshRequest.roundUp(bytes) <= scratchBytes;
        begun = true;
        for (int peer = 0; peer < ranks; peer++) {
            if (early[peer][MeshFrame.WHAT] != 0) {
                check(peer, early[peer]);
            }
        }
    }

    void clear() {
        begun = false;
        combined = false;
        contributionsOffered = 0;
        resultsOffered = 0;
        for (int peer = 0; peer < ranks; peer++) {
            for (int kind = MeshFrame.CONTRIBUTION; kind <= MeshFrame.RESULT; kind++) {
                accepted[kind][peer] = false;
                arrived[kind][peer] = false;
            }
            early[peer][MeshFrame.WHAT] = 0;
            offeredUpTo[peer] = 0;
        }
    }

    /**
     * Returns whether results overwrite data that this rank still sends. In this case, the data must have left this
     * rank's memory before the reduction. Only an all-reduce with one hop overwrites such data, if send and receive
     * memory overlap. In the other reductions, a rank writes its own result only to its own range, which it does not
     * send as a contribution. A peer sends a result only after it has received this rank's contribution to the same
     * range.
     */
    boolean overwritesWhatItSends() {
        return exchanged && request.isInPlace();
    }

    /** Returns whether each rank sends its reduced data as a result to all other ranks. */
    boolean hasResults() {
        return request.function == Function.ALL_REDUCE && !exchanged;
    }

    /** Returns the beginning of a rank's range. The rank reduces this range or, in a gather, contributes it. */
    private long rangeBegin(int of) {
        return switch (request.function) {
            case ALL_REDUCE -> exchanged ? 0 : Math.min(of * shardBytes(), bytes);
            case ALL_GATHER, REDUCE_SCATTER -> inPiece(of * request.bytesPerRank);
        };
    }

    private long rangeEnd(int of) {
        return switch (request.function) {
            case ALL_REDUCE -> exchanged ? bytes : Math.min((of + 1) * shardBytes(), bytes);
            case ALL_GATHER, REDUCE_SCATTER -> inPiece((of + 1) * request.bytesPerRank);
        };
    }

    private long shardBytes() {
        return MeshRequest.roundUp((bytes + ranks - 1) / ranks);
    }

    /** Converts an offset in the whole buffer to an offset in this piece, clamped to the piece's beginning and end. */
    private long inPiece(long offset) {
        return Math.clamp(offset - request.windowOffset - base, 0L, bytes);
    }

    /**
     * Returns the length of a rank's range. The rank's result, or in a gather the rank's contribution, has the same
     * length.
     */
    long rangeBytes(int of) {
        return rangeEnd(of) - rangeBegin(of);
    }

    private boolean gathers() {
        return request.function == Function.ALL_GATHER;
    }

    /** Returns the length of the contribution from one rank to another rank. */
    long contributionBytes(int from, int to) {
        return rangeBytes(gathers() ? from : to);
    }

    /** Returns the offset of this rank's contribution to another rank, in the request's send memory. */
    long contributionOffset(int to) {
        return gathers() ? request.sendOffset + ownPartOffset() : request.sendOffset + base + rangeBegin(to);
    }

    /**
     * Returns the offset of a rank's result in the request's receive memory. In a gather, returns the offset of the
     * rank's contribution in this memory.
     */
    long resultOffset(int of) {
        return request.function == Function.REDUCE_SCATTER ? request.receiveOffset + ownPartOffset()
                : request.receiveOffset + base + rangeBegin(of);
    }

    /**
     * Returns the offset of this rank's range of this piece, counted from the beginning of this rank's part of the
     * window.
     */
    private long ownPartOffset() {
        return request.windowOffset + base + rangeBegin(rank)
                - Math.max(request.windowOffset, rank * request.bytesPerRank);
    }

    /**
     * Returns the offset of a contribution in the receiver's scratch memory. There the contribution waits for the other
     * contributions.
     */
    private long scratchOffset(int from, int to) {
        return gathers() ? rangeBegin(from)
                : (from < to ? from : from - 1) * MeshRequest.roundUp(contributionBytes(from, to));
    }

    void write(FrameHeader header, int kind, int to) {
        header.word(MeshFrame.SEQUENCE, sequence);
        header.word(MeshFrame.WHAT, MeshFrame.what(kind, request));
        header.word(MeshFrame.BYTES, bytes);
        header.word(MeshFrame.SCRATCH_OFFSET, kind == MeshFrame.RESULT ? 0 : scratchOffset(rank, to));
        header.word(MeshFrame.WINDOW_OFFSET, request.windowOffset + base);
        header.word(MeshFrame.BYTES_PER_RANK, request.bytesPerRank);
        header.payloadBytes(kind == MeshFrame.RESULT ? rangeBytes(rank) : contributionBytes(rank, to));
    }

    /** Returns whether an early contribution fits into scratch memory at the offset that its sender chose. */
    boolean holds(FrameHeader header) {
        long offset = header.word(MeshFrame.SCRATCH_OFFSET);
        return header.word(MeshFrame.WHAT) != 0 && offset >= 0 && offset <= scratchBytes && header.payloadBytes() >= 0
                && header.payloadBytes() <= scratchBytes - offset;
    }

    /** Keeps the header of a contribution until this rank begins this piece. */
    void keep(int from, FrameHeader header) {
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            early[from][word] = header.word(word);
        }
        early[from][FrameHeader.WORDS] = header.payloadBytes();
    }

    /** Throws an exception if a frame's header does not match this rank's request. */
    void check(int from, FrameHeader header) {
        keep(from, header);
        check(from, early[from]);
        early[from][MeshFrame.WHAT] = 0;
    }

    private void check(int from, long[] said) {
        int kind = MeshFrame.kind(said[MeshFrame.WHAT]);
        long expected = kind == MeshFrame.RESULT ? rangeBytes(from) : contributionBytes(from, rank);
        if (said[MeshFrame.WHAT] != MeshFrame.what(kind, request) || said[FrameHeader.WORDS] != expected
                || kind == MeshFrame.RESULT && !hasResults() || said[MeshFrame.BYTES] != bytes
                || said[MeshFrame.WINDOW_OFFSET] != request.windowOffset + base
                || said[MeshFrame.BYTES_PER_RANK] != request.bytesPerRank
                || kind == MeshFrame.CONTRIBUTION && said[MeshFrame.SCRATCH_OFFSET] != scratchOffset(from, rank)) {
            throw disagree(from, said);
        }
    }

    private MismatchException disagree(int from, long[] said) {
        return new MismatchException("the ranks disagree: rank " + rank + " asks for "
                + MeshRequest.describe(request.function.ordinal(), request.type.code(), request.op.code(),
                        request.windowOffset + base, bytes, request.bytesPerRank)
                + ", and rank " + from + " for " + MeshFrame.describe(said)
                + ". All ranks must call the same operations in the same order", rank, from, null, null);
    }

    /**
     * Returns whether a contribution is received into scratch memory. The contributions of a gather are received at
     * their destination, unless they arrive early.
     */
    boolean goesToScratch() {
        return !begun || !gathers();
    }

    /**
     * Returns the offset of a contribution in scratch memory. The contribution must have been checked. An early
     * contribution must fit into scratch memory.
     */
    long scratchPlace(FrameHeader header) {
        return scratchBase + header.word(MeshFrame.SCRATCH_OFFSET);
    }

    boolean isComplete(int kind) {
        for (int peer = 0; peer < ranks; peer++) {
            if (lacks(kind, peer)) {
                return false;
            }
        }
        return true;
    }

    boolean lacks(int kind, int from) {
        return from != rank && !arrived[kind][from]
                && (kind == MeshFrame.CONTRIBUTION ? contributionBytes(from, rank) > 0
                        : hasResults() && rangeBytes(from) > 0);
    }

    void combine() {
        combined = true;
        if (gathers()) {
            gather();
        } else if (rangeBytes(rank) > 0) {
            reduce();
        }
    }

    private void gather() {
        if (rangeBytes(rank) > 0) {
            MemorySegment.copy(request.send.segment(), contributionOffset(rank), request.receive.segment(),
                    resultOffset(rank), rangeBytes(rank));
        }
        for (int peer = 0; peer < ranks; peer++) {
            if (early[peer][MeshFrame.WHAT] != 0) {
                MemorySegment.copy(scratch.segment(), scratchBase + scratchOffset(peer, rank),
                        request.receive.segment(), resultOffset(peer), rangeBytes(peer));
            }
        }
    }

    /**
     * Reduces in the order of ranks, so that all ranks get the same bits if each of them reduces everything.
     * Intermediate results overwrite a contribution that is no longer needed. Intermediate results are not stored in
     * the request's receive memory. The receive memory can be the same as the send memory, which is read until the end
     * of the reduction.
     */
    private void reduce() {
        long count = rangeBytes(rank) / request.type.bytes();
        MemorySegment own = request.send.segment();
        MemorySegment waiting = scratch.segment();
        MemorySegment result = request.receive.segment();
        if (ranks == 1) {
            MemorySegment.copy(own, contributionOffset(rank), result, resultOffset(rank), rangeBytes(rank));
            return;
        }
        MemorySegment before = rank == 0 ? own : waiting;
        long beforeAt = place(0);
        for (int next = 1; next < ranks; next++) {
            boolean end = next == ranks - 1;
            MemorySegment to = end ? result : waiting;
            long toAt = end ? resultOffset(rank) : place(rank == 0 ? 1 : 0);
            request.kernel.reduce(next == rank ? own : waiting, place(next), before, beforeAt, to, toAt, count,
                    end && exchanged);
            before = to;
            beforeAt = toAt;
        }
    }

    private long place(int of) {
        return of == rank ? contributionOffset(rank) : scratchBase + scratchOffset(of, rank);
    }

    @Override
    public String toString() {
        return begun ? "piece " + sequence + " of " + request : "a piece that was not begun";
    }
}
