package org.millrace.device;

import java.lang.foreign.MemorySegment;

/** A piece in each pass, so that proxies and other streams that the same thread runs go on meanwhile. */
final class PiecewiseCopy implements StreamTask {

    private static final long PIECE_BYTES = 1 << 20;

    private final MemorySegment source;
    private final MemorySegment destination;
    private final long pieceBytes;
    private long copied;

    PiecewiseCopy(MemorySegment source, MemorySegment destination) {
        this.source = source;
        this.destination = destination;
        // one piece could write over what a later one reads
        boolean apart = source.asOverlappingSlice(destination).isEmpty();
        pieceBytes = apart ? PIECE_BYTES : source.byteSize();
    }

    @Override
    public int progress() {
        long bytes = Math.min(pieceBytes, source.byteSize() - copied);
        MemorySegment.copy(source, copied, destination, copied, bytes);
        copied += bytes;
        return 1;
    }

    @Override
    public void skip(Throwable reason) {
        copied = source.byteSize();
    }

    @Override
    public boolean done() {
        return copied == source.byteSize();
    }
}
