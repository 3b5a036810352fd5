package org.millrace.net.shm.ring;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.NativeRegion;

/**
 * The sending end of a ring. Payloads go through it in pieces, so that the receiver copies one out while the next is
 * copied in, and so that they may be longer than the ring. A frame's header and first piece become visible together;
 * every call moves about one piece, so that one thread can serve many connections evenly.
 */
public final class ShmSender implements FrameSender {

    private final ShmConnection connection;
    private final RingSide.Producer producer;
    private final int pieceBytes;
    private final WaitingFrames waiting;
    /** The payload of the frame whose header is in the ring, and what of it is not. */
    private MemorySegment payload = MemorySegment.NULL;
    private long payloadOffset;
    private long remaining;
    private long completed;

    public ShmSender(ShmConnection connection, ShmOptions options) {
        this.connection = connection;
        producer = new RingSide.Producer(connection.ring(), options.ringBytes(), connection);
        pieceBytes = options.pieceBytes();
        waiting = new WaitingFrames(options.framesInFlight());
    }

    @Override
    public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        connection.checkOpen();
        long bytes = header.payloadBytes();
        if (bytes < 0 || bytes > FrameLayout.MAX_PAYLOAD_BYTES) {
            throw new IllegalArgumentException(
                    "a payload has 0 to " + FrameLayout.MAX_PAYLOAD_BYTES + " bytes, not " + bytes);
        }
        MemorySegment memory = bytes == 0 ? MemorySegment.NULL
                : NativeRegion.check(region, connection.network(), offset, bytes).view();
        try {
            if (remaining == 0 && waiting.isEmpty() && begin(header, memory, offset)) {
                return true;
            }
        } catch (IllegalStateException e) {
            throw connection.closedDuring(e);
        }
        if (waiting.isFull()) {
            return false;
        }
        waiting.add(header, memory, offset);
        return true;
    }

    /** Sends a header and the first piece; false if the ring has no room for both. */
    private boolean begin(FrameHeader header, MemorySegment memory, long offset) {
        long bytes = header.payloadBytes();
        if (!producer.hasRoom(FrameLayout.HEADER_BYTES + Math.min(RingLayout.align(bytes), pieceBytes))) {
            return false;
        }
        producer.writeHeader(header);
        payload = memory;
        payloadOffset = offset;
        remaining = bytes;
        sendPiece();
        return true;
    }

    private long sendPiece() {
        long bytes = Math.min(remaining, pieceBytes);
        if (bytes > 0) {
            producer.writePayload(payload, payloadOffset, bytes);
            payloadOffset += bytes;
            remaining -= bytes;
        }
        producer.publish();
        if (remaining == 0) {
            completed++;
        }
        return bytes;
    }

    @Override
    public int progress() {
        connection.checkOpen();
        try {
            long moved = 0;
            while (moved < pieceBytes) {
                if (remaining > 0) {
                    if (!producer.hasRoom(Math.min(RingLayout.align(remaining), pieceBytes))) {
                        break;
                    }
                    moved += sendPiece();
                } else if (!waiting.isEmpty()
                        && begin(waiting.oldestHeader(), waiting.oldestPayload(), waiting.oldestOffset())) {
                    moved += FrameLayout.HEADER_BYTES + waiting.oldestHeader().payloadBytes() - remaining;
                    waiting.removeOldest();
                } else {
                    break;
                }
            }
            if (moved == 0) {
                lookAtPeer();
            }
            return (int) moved;
        } catch (IllegalStateException e) {
            throw connection.closedDuring(e);
        }
    }

    private void lookAtPeer() {
        if (producer.consumerSaidGoodbye()) {
            throw connection.closedByPeer(howFar(), RingLayout.lastWords(connection.ring(), false));
        }
        if (connection.peerIsGone()) {
            // It may have said goodbye between the two looks.
            throw producer.consumerSaidGoodbye() ? connection.closedByPeer(howFar(), RingLayout.lastWords(connection.ring(), false)) : connection.lost(howFar());
        }
    }

    private String howFar() {
        return "after " + completed + " whole frames were sent"
                + (remaining == 0 ? "" : ", with " + remaining + " bytes of the next one to go");
    }

    @Override
    public long framesCompleted() {
        return completed;
    }

    @Override
    public void close() {
        connection.close(this::finish);
    }

    @Override
    public void abort() {
        connection.close(connection.blamed() == null ? () -> {} : this::finish);
    }

    private void finish() {
        try {
            while (progress() > 0) {
                // Sends what the ring has room for.
            }
            if (remaining == 0 && waiting.isEmpty() || connection.blamed() != null) {
                producer.sayGoodbye();
            }
        } catch (ConnectionException lost) {
            // The peer is gone before us; the owner did not want to know of it any more.
        }
    }

    @Override
    public String peer() {
        return connection.peer();
    }

    @Override
    public void blame(String lostPeer) {
        connection.blame(lostPeer);
    }

    @Override
    public String toString() {
        return connection.toString();
    }

    /** Frames that were offered while the ring had no room for them, oldest first. One thread. */
    private static final class WaitingFrames {

        private final FrameHeader[] headers;
        private final MemorySegment[] payloads;
        private final long[] offsets;
        private int oldest;
        private int count;

        WaitingFrames(int limit) {
            headers = new FrameHeader[limit];
            for (int i = 0; i < limit; i++) {
                headers[i] = new FrameHeader();
            }
            payloads = new MemorySegment[limit];
            offsets = new long[limit];
        }

        boolean isEmpty() {
            return count == 0;
        }

        boolean isFull() {
            return count == headers.length;
        }

        /** Adds a frame: the header is copied. */
        void add(FrameHeader header, MemorySegment payload, long offset) {
            int slot = (oldest + count) % headers.length;
            headers[slot].set(header);
            payloads[slot] = payload;
            offsets[slot] = offset;
            count++;
        }

        FrameHeader oldestHeader() {
            return headers[oldest];
        }

        MemorySegment oldestPayload() {
            return payloads[oldest];
        }

        long oldestOffset() {
            return offsets[oldest];
        }

        void removeOldest() {
            payloads[oldest] = MemorySegment.NULL;
            oldest = (oldest + 1) % headers.length;
            count--;
        }
    }
}
