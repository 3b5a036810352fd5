package org.millrace.net.shm.ring;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Pages;
import org.millrace.net.connection.NativeRegion;

/**
 * The receiving end of a ring: payloads are copied from it straight to their destinations, one at a time, in pieces.
 */
public final class ShmReceiver implements FrameReceiver {

    private final ShmConnection connection;
    private final RingSide.Consumer consumer;
    private final int pieceBytes;
    private final FrameHeader header = new FrameHeader();
    /** The header was shown, and its payload has no destination yet. */
    private boolean headerShown;
    private MemorySegment destination = MemorySegment.NULL;
    private long destinationOffset;
    /** Where the payload is spread over; null if it goes to one place. */
    private @Nullable Pages pages;
    private int firstPage;
    private long received;
    private long remaining;
    private long completed;

    public ShmReceiver(ShmConnection connection, int ringBytes, int pieceBytes) {
        this.connection = connection;
        this.pieceBytes = pieceBytes;
        consumer = new RingSide.Consumer(connection.ring(), ringBytes, connection);
    }

    @Override
    public @Nullable FrameHeader poll() {
        connection.checkOpen();
        if (headerShown) {
            return header;
        }
        if (remaining > 0) {
            return null;
        }
        try {
            if (consumer.available() == 0) {
                lookAtPeer();
                return null;
            }
            consumer.readHeader(header);
        } catch (IllegalStateException e) {
            throw connection.closedDuring(e);
        }
        headerShown = true;
        return header;
    }

    @Override
    public void accept(@Nullable MemoryRegion region, long offset) {
        connection.checkAccept(headerShown);
        long bytes = header.payloadBytes();
        destination = bytes == 0 ? MemorySegment.NULL
                : NativeRegion.check(region, connection.network(), offset, bytes).view();
        destinationOffset = offset;
        pages = null;
        begin(bytes);
    }

    @Override
    public boolean scatters() {
        return true;
    }

    @Override
    public void acceptScattered(Pages to, int first) {
        connection.checkAccept(headerShown);
        long bytes = header.payloadBytes();
        Objects.checkFromIndexSize(first, (int) ((bytes + to.bytesEach() - 1) / to.bytesEach()), to.offsets().length);
        destination = NativeRegion.check(to.region(), connection.network(), 0, 0).view();
        pages = to;
        firstPage = first;
        begin(bytes);
    }

    private void begin(long bytes) {
        received = 0;
        remaining = bytes;
        headerShown = false;
        consumer.skipHeader();
        try {
            receivePiece();
        } catch (IllegalStateException e) {
            throw connection.closedDuring(e);
        }
    }

    /** Receives as much as is there, one piece at most, and gives its room back together with the header's. */
    private long receivePiece() {
        long bytes = Math.min(remaining, pieceBytes);
        if (bytes > 0) {
            bytes = Math.min(bytes, consumer.available());
            Pages to = pages;
            if (to == null) {
                consumer.readPayload(destination, destinationOffset, bytes);
                destinationOffset += bytes;
            } else {
                scatter(to, bytes);
            }
            received += bytes;
            remaining -= bytes;
        }
        consumer.release();
        if (remaining == 0) {
            completed++;
        }
        return bytes;
    }

    /** Bounds are the region's: a page that does not lie within it is an {@link IndexOutOfBoundsException}. */
    private void scatter(Pages to, long bytes) {
        int pageBytes = to.bytesEach();
        for (long done = 0; done < bytes;) {
            long at = received + done;
            long part = Math.min(bytes - done, pageBytes - at % pageBytes);
            consumer.readPayload(destination, to.offset(firstPage, at), part);
            done += part;
        }
    }

    @Override
    public int progress() {
        connection.checkOpen();
        if (remaining == 0) {
            return 0;
        }
        try {
            if (consumer.available() == 0) {
                lookAtPeer();
                return 0;
            }
            return (int) receivePiece();
        } catch (IllegalStateException e) {
            throw connection.closedDuring(e);
        }
    }

    /**
     * Asks, when nothing is in the ring, whether anything can follow; what the peer sent before it ended is received
     * first.
     */
    private void lookAtPeer() {
        if (!consumer.producerSaidGoodbye() && !connection.peerIsGone()) {
            return;
        }
        boolean goodbye = consumer.producerSaidGoodbye();
        if (consumer.available() == 0) {
            String lostPeer = goodbye ? RingLayout.lastWords(connection.ring(), true) : null;
            throw goodbye && (remaining == 0 || lostPeer != null) ? connection.closedByPeer(howFar(), lostPeer)
                    : connection.lost(howFar());
        }
    }

    private String howFar() {
        return "after " + completed + " whole frames"
                + (remaining == 0 ? "" : ", with " + remaining + " bytes of the next one missing");
    }

    @Override
    public long framesCompleted() {
        return completed;
    }

    @Override
    public boolean storesWholeWords() {
        return consumer.copiesWholeWords();
    }

    @Override
    public void close() {
        connection.close(consumer::sayGoodbye);
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
}
