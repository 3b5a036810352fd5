package org.millrace.collnet.aggregator;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.MillraceException;
import org.millrace.MismatchException;
import org.millrace.ReduceOp;
import org.millrace.collnet.CollectiveNetwork;
import org.millrace.collnet.aggregator.AggregatorFrame.Function;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.connection.PeerText;

/**
 * A rank's end of a network of aggregators. All ranks make the same calls in the same order; the thread that asks and
 * tests makes the progress.
 */
public final class AggregatorNetwork implements CollectiveNetwork {

    /** Requests under way at the same time. */
    public static final int REQUESTS = 256;

    private final int rank;
    private final Network network;
    private final List<AggregatorLink> links;
    private final AggregatorLink.Request[] requests = new AggregatorLink.Request[REQUESTS];
    private final FrameHeader header = new FrameHeader();
    private final Arena arena = Arena.ofShared();
    private final MemoryRegion text;
    private final AtomicLong asked = new AtomicLong();
    private final AtomicLong told = new AtomicLong();
    /** The request whose pieces are dealt out, and how far that has come. */
    private long cutting;
    private long cutTo;
    private long pieces;
    private @Nullable MillraceException failure;
    private boolean closed;

    /** A network whose connections are made, which it closes, and what made them. */
    AggregatorNetwork(int rank, Network network, List<AggregatorLink> links) {
        this.rank = rank;
        this.network = network;
        this.links = List.copyOf(links);
        this.text = network.register(arena.allocate(AggregatorFrame.TEXT_BYTES, Long.BYTES));
        for (int i = 0; i < REQUESTS; i++) {
            requests[i] = new AggregatorLink.Request();
        }
    }

    @Override
    public MemoryRegion register(MemorySegment memory) {
        return network.register(memory);
    }

    @Override
    public int iallreduce(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long count,
            DataType type, ReduceOp.BuiltIn op) {
        return ask(Function.ALL_REDUCE, send, sendOffset, receive, receiveOffset, 0, 0, count * type.bytes(), type, op);
    }

    @Override
    public int iallgather(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset,
            long bytesPerRank, long windowOffset, long windowBytes) {
        return ask(Function.ALL_GATHER, send, sendOffset, receive, receiveOffset, bytesPerRank, windowOffset,
                windowBytes, DataType.INT8, ReduceOp.BuiltIn.SUM);
    }

    @Override
    public int ireducescatter(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset,
            long bytesPerRank, long windowOffset, long windowBytes, DataType type, ReduceOp.BuiltIn op) {
        return ask(Function.REDUCE_SCATTER, send, sendOffset, receive, receiveOffset, bytesPerRank, windowOffset,
                windowBytes, type, op);
    }

    private int ask(Function function, MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset,
            long bytesPerRank, long windowOffset, long windowBytes, DataType type, ReduceOp.BuiltIn op) {
        failIfLost();
        int number = (int) (asked.getPlain() % REQUESTS);
        AggregatorLink.Request request = requests[number];
        if (request.inUse) {
            return NO_REQUEST;
        }
        request.send = send;
        request.sendOffset = sendOffset;
        request.receive = receive;
        request.receiveOffset = receiveOffset;
        request.function = function;
        request.what = AggregatorFrame.what(AggregatorFrame.CONTRIBUTION, function, type, op);
        request.windowOffset = windowOffset;
        request.windowBytes = windowBytes;
        request.bytesPerRank = bytesPerRank;
        request.bytesLeft = windowBytes;
        request.inUse = true;
        asked.setRelease(asked.getPlain() + 1);
        return number;
    }

    @Override
    public long test(int number) {
        AggregatorLink.Request request = requests[Objects.checkIndex(number, REQUESTS)];
        if (!request.inUse) {
            throw new IllegalArgumentException("request " + number + " is not under way");
        }
        if (failure == null) {
            try {
                progress();
            } catch (MillraceException lost) {
                failure = lost;
            }
        }
        if (request.bytesLeft > 0) {
            failIfLost();
            return PENDING;
        }
        request.inUse = false;
        told.setRelease(told.getPlain() + 1);
        return request.windowBytes;
    }

    private void failIfLost() {
        if (failure instanceof MismatchException) {
            throw new MismatchException(
                    "the collective network of rank " + rank + " has ended: " + failure.getMessage(), rank,
                    MismatchException.NOBODY, null, failure);
        }
        if (failure != null) {
            throw new ConnectionException(
                    "the collective network of rank " + rank + " has ended: " + failure.getMessage(), failure);
        }
    }

    private void progress() {
        deal();
        for (AggregatorLink link : links) {
            try {
                progress(link);
            } catch (ConnectionException lost) {
                throw new ConnectionException(link.to + ": " + lost.getMessage(), lost);
            }
        }
    }

    private void progress(AggregatorLink link) {
        ConnectionException lost = null;
        try {
            while (link.offeredPieces < link.begun && offer(link, link.piece(link.offeredPieces), link.offeredPieces)) {
                link.offeredPieces++;
            }
            link.sender.progress();
            link.receiver.progress();
            for (FrameHeader said = link.receiver.poll(); said != null; said = link.receiver.poll()) {
                accept(link, said);
            }
        } catch (ConnectionException end) {
            lost = end; // what came before it counts, as an aggregator's last words
        }
        while (link.arrived < link.receiver.framesCompleted()) {
            if (link.arrived == link.accepted) {
                throw lastWords(link);
            }
            link.piece(link.arrived++).arrived = true;
        }
        finish(link);
        if (lost != null) {
            throw lost;
        }
    }

    /** Piece by piece to the next aggregator, the same way on every rank. */
    private void deal() {
        while (cutting < asked.getPlain()) {
            AggregatorLink.Request request = requests[(int) (cutting % REQUESTS)];
            AggregatorLink link = links.get((int) (pieces % links.size()));
            if (cutTo == request.windowBytes) {
                cutting++;
                cutTo = 0;
            } else if (link.begun - link.done == AggregatorFrame.PIECES) {
                return;
            } else {
                AggregatorLink.Piece piece = link.piece(link.begun++);
                piece.request = request;
                piece.base = cutTo;
                piece.bytes = Math.min(AggregatorFrame.LONGEST_PIECE, request.windowBytes - cutTo);
                piece.arrived = false;
                cutTo += piece.bytes;
                pieces++;
            }
        }
    }

    private boolean offer(AggregatorLink link, AggregatorLink.Piece piece, long number) {
        AggregatorLink.Request request = piece.request;
        long own = AggregatorFrame.partBegin(piece.offset(), piece.bytes, request.bytesPerRank, rank);
        header.word(AggregatorFrame.SEQUENCE, number);
        header.word(AggregatorFrame.WHAT, request.what);
        header.word(AggregatorFrame.BYTES, piece.bytes);
        header.word(AggregatorFrame.WINDOW_OFFSET, piece.offset());
        header.word(AggregatorFrame.BYTES_PER_RANK, request.bytesPerRank);
        header.payloadBytes(AggregatorFrame.contributionBytes(request.function, piece.offset(), piece.bytes,
                request.bytesPerRank, rank));
        long from = request.function == Function.ALL_GATHER ? ownOffset(piece, own) : piece.base;
        if (!link.sender.offer(header, request.send, request.sendOffset + from)) {
            return false;
        }
        piece.offeredAs = number + 2; // behind the hello
        return true;
    }

    /** How far this rank's part of a piece lies behind the beginning of its part of the window. */
    private long ownOffset(AggregatorLink.Piece piece, long inPiece) {
        return piece.offset() + inPiece - Math.max(piece.request.windowOffset, rank * piece.request.bytesPerRank);
    }

    private void accept(AggregatorLink link, FrameHeader said) {
        int kind = AggregatorFrame.kind(said.word(AggregatorFrame.WHAT));
        if ((kind == AggregatorFrame.MISMATCH || kind == AggregatorFrame.LOST) && link.lastWords < 0
                && said.payloadBytes() >= 0 && said.payloadBytes() <= AggregatorFrame.TEXT_BYTES) {
            link.lastWords = kind;
            link.lastWordsBytes = (int) said.payloadBytes();
            link.receiver.accept(text, 0);
            return;
        }
        AggregatorLink.Piece piece = link.piece(link.accepted);
        AggregatorLink.Request request = piece.request;
        if (link.accepted == link.offeredPieces || said.word(AggregatorFrame.SEQUENCE) != link.accepted
                || said.word(AggregatorFrame.WHAT) != AggregatorFrame.withKind(request.what, AggregatorFrame.RESULT)
                || said.word(AggregatorFrame.BYTES) != piece.bytes
                || said.word(AggregatorFrame.WINDOW_OFFSET) != piece.offset()
                || said.word(AggregatorFrame.BYTES_PER_RANK) != request.bytesPerRank
                || said.payloadBytes() != AggregatorFrame.resultBytes(request.function, piece.offset(), piece.bytes,
                        request.bytesPerRank, rank)) {
            throw new ConnectionException("it sent what was not asked for: piece " + said.word(AggregatorFrame.SEQUENCE)
                    + ", kind " + kind + ", " + said.payloadBytes() + " bytes");
        }
        long own = AggregatorFrame.partBegin(piece.offset(), piece.bytes, request.bytesPerRank, rank);
        link.receiver.accept(request.receive, request.receiveOffset
                + (request.function == Function.REDUCE_SCATTER ? ownOffset(piece, own) : piece.base));
        link.accepted++;
    }

    private MillraceException lastWords(AggregatorLink link) {
        byte[] bytes = text.segment().asSlice(0, link.lastWordsBytes).toArray(ValueLayout.JAVA_BYTE);
        String why = "it says: " + PeerText.line(new String(bytes, StandardCharsets.UTF_8));
        return link.lastWords == AggregatorFrame.MISMATCH
                ? new MismatchException(why, rank, MismatchException.NOBODY, null, null)
                : new ConnectionException(why);
    }

    /** What is here, and whose elements nobody reads any more. */
    private static void finish(AggregatorLink link) {
        while (link.done < link.begun && link.piece(link.done).arrived
                && link.sender.framesCompleted() >= link.piece(link.done).offeredAs) {
            AggregatorLink.Piece piece = link.piece(link.done++);
            piece.request.bytesLeft -= piece.bytes;
        }
    }

    /** {@return whether requests were begun whose end nobody has been told of} Safe from any thread. */
    public boolean isBusy() {
        return told.getAcquire() != asked.getAcquire();
    }

    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            boolean lost = failure != null || isBusy();
            for (AggregatorLink link : links) {
                if (lost) {
                    link.sender.abort();
                } else {
                    link.sender.close();
                }
                link.receiver.close();
            }
            text.close();
            network.close();
            arena.close();
        }
    }
}
