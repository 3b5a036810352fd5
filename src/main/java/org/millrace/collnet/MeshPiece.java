package org.millrace.collnet;

import java.lang.foreign.MemorySegment;
import org.millrace.MismatchException;
import org.millrace.collnet.MeshRequest.Function;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;

/**
 * A piece of a request: what goes where, and how far it has come. An aggregator has some of them, which it uses in
 * turns; what arrives for a piece before this rank knows of it waits in its scratch memory.
 *
 * <p>
 * A contribution is what a rank gives to another, and a result what a rank that reduces gives to all. Offsets and
 * lengths are bytes; a range is a part of the piece, 0 to {@link #bytes}.
 */
final class MeshPiece {

    /** Up to here an all-reduce takes one hop: what it sends more takes less time than a second one. */
    private static final long EXCHANGED_BYTES = 32 << 10;

    private final int rank;
    private final int ranks;
    private final MemoryRegion scratch;
    private final long scratchBase;
    private final long scratchBytes;

    /** What each rank has sent so far, and what of it has arrived whole, by kind. */
    final boolean[][] accepted;
    final boolean[][] arrived;
    /** Words and length of contributions that came before the piece was begun, by rank. */
    private final long[][] early;
    /** Behind the piece's last frame to each rank: how many frames that rank has been offered. */
    final long[] offeredUpTo;

    MeshRequest request = new MeshRequest();
    boolean begun;
    private boolean exchanged;
    private long sequence;
    private long base;
    long bytes;
    /** Whether it is the aggregator's last of its request. */
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

    /** This rank asks for it: the piece at an offset of a request's window. */
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
     * Whether what this rank sends lies where results are written: it must have left before. Of longer all-reduces and
     * of the other functions a rank's own range is nobody else's, and what a peer answers it has received.
     */
    boolean overwritesWhatItSends() {
        return exchanged && request.isInPlace();
    }

    /** Whether a rank sends what it has reduced to all others. */
    boolean hasResults() {
        return request.function == Function.ALL_REDUCE && !exchanged;
    }

    /** Where a rank's range begins: what it reduces, or of a gather what it gives. */
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

    /** An offset in the whole buffer as one of this piece, its end or beginning if it lies outside. */
    private long inPiece(long offset) {
        return Math.clamp(offset - request.windowOffset - base, 0L, bytes);
    }

    /** How long a rank's range is: what it reduces, and so its result, or of a gather what it gives. */
    long rangeBytes(int of) {
        return rangeEnd(of) - rangeBegin(of);
    }

    private boolean gathers() {
        return request.function == Function.ALL_GATHER;
    }

    /** How long a contribution is that one rank gives to another. */
    long contributionBytes(int from, int to) {
        return rangeBytes(gathers() ? from : to);
    }

    /** Where this rank's contribution to another lies in the request's memory. */
    long contributionOffset(int to) {
        return gathers() ? request.sendOffset + ownPartOffset() : request.sendOffset + base + rangeBegin(to);
    }

    /** Where a rank's result belongs in the request's memory; of a gather, a rank's contribution. */
    long resultOffset(int of) {
        return request.function == Function.REDUCE_SCATTER ? request.receiveOffset + ownPartOffset()
                : request.receiveOffset + base + rangeBegin(of);
    }

    /** How far this rank's range of the piece lies behind the beginning of its range of the window. */
    private long ownPartOffset() {
        return request.windowOffset + base + rangeBegin(rank)
                - Math.max(request.windowOffset, rank * request.bytesPerRank);
    }

    /** Where a contribution waits for the others in the scratch memory of the rank that it is for. */
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

    /** Whether a contribution that came early fits into scratch memory where its sender wants it. */
    boolean holds(FrameHeader header) {
        long offset = header.word(MeshFrame.SCRATCH_OFFSET);
        return header.word(MeshFrame.WHAT) != 0 && offset >= 0 && offset <= scratchBytes && header.payloadBytes() >= 0
                && header.payloadBytes() <= scratchBytes - offset;
    }

    /** Keeps what a contribution says of itself until this rank knows of its piece. */
    void keep(int from, FrameHeader header) {
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            early[from][word] = header.word(word);
        }
        early[from][FrameHeader.WORDS] = header.payloadBytes();
    }

    /** Throws if a frame says something else than this rank does. */
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

    /** Where a contribution goes. One of a gather is where it belongs, unless it comes early. */
    boolean goesToScratch() {
        return !begun || !gathers();
    }

    /** In scratch memory: of a contribution that was checked, or that is early and fits. */
    long scratchPlace(FrameHeader header) {
        return scratchBase + header.word(MeshFrame.SCRATCH_OFFSET);
    }

    /** Whether all contributions to this rank have arrived. */
    boolean isComplete(int kind) {
        for (int peer = 0; peer < ranks; peer++) {
            if (lacks(kind, peer)) {
                return false;
            }
        }
        return true;
    }

    /** Whether a rank still owes a frame. */
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
     * In the order of ranks, so that all get the same bits, where each reduces all. What is not the end result yet goes
     * where a contribution was that is used up: the request's memory may be the same for both ends, and is read until
     * then.
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
