package org.millrace.collnet.aggregator;

import org.jspecify.annotations.Nullable;
import org.millrace.collnet.aggregator.AggregatorFrame.Function;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;

/** A rank's connections with one aggregator, and what is under way there. */
final class AggregatorLink {

    /** What was asked for. Offsets and lengths are bytes. */
    static final class Request {
        @Nullable
        MemoryRegion send;
        @Nullable
        MemoryRegion receive;
        Function function = Function.ALL_REDUCE;
        long what;
        long sendOffset;
        long receiveOffset;
        long windowOffset;
        long windowBytes;
        long bytesPerRank;
        long bytesLeft;
        boolean inUse;
    }

    /** A part of a request's window, which is one aggregator's. */
    static final class Piece {
        Request request = new Request();
        long base;
        long bytes;
        long offeredAs;
        boolean arrived;

        long offset() {
            return request.windowOffset + base;
        }
    }

    final String to;
    final FrameSender sender;
    final FrameReceiver receiver;
    final Piece[] pieces = new Piece[AggregatorFrame.PIECES];
    long begun;
    long offeredPieces;
    long accepted;
    long arrived;
    long done;
    /** Kind of the last words that were accepted; -1 for none. */
    int lastWords = -1;
    int lastWordsBytes;

    /** @param sender has sent one frame, the hello */
    AggregatorLink(String to, FrameSender sender, FrameReceiver receiver) {
        this.to = to;
        this.sender = sender;
        this.receiver = receiver;
        for (int i = 0; i < pieces.length; i++) {
            pieces[i] = new Piece();
        }
    }

    Piece piece(long number) {
        return pieces[(int) (number % pieces.length)];
    }
}
