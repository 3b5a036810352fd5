package org.millrace.net.shm.ring;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Pages;
import org.millrace.net.shm.ShmNetwork;

/**
 * The receiving end of a ring: payloads are copied from it straight to their destinations, one at a time, in pieces.
 */
public final class ShmReceiver implements FrameReceiver {

    private final ShmNetwork network;
    private final ShmConnection link;
    private final RingConsumer consumer;
    private final int pieceBytes;
    private final FrameHeader header = new FrameHeader();
    /** The header was shown, and its payload has no destination yet. */
    private boolean headerShown;
    private MemorySegment destination;
    private long destinationOffset;
    /** Where the payload is spread over; null if it goes to one place. */
    private Pages pages;
    private int firstPage;
    private long received;
    private long remaining;
    private long completed;

    public ShmReceiver(ShmNetwork network, ShmConnection link, RingConsumer consumer) {
        this.network = network;
        this.link = link;
        this.consumer = consumer;
        pieceBytes = network.options().pieceBytes();
    }

    @Override
    public FrameHeader poll() {
        link.checkOpen();
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
            throw link.closedDuring(e);
        }
        headerShown = true;
        return header;
    }

    @Override
    public void accept(MemoryRegion region, long offset) {
        checkHeaderShown();
        long bytes = header.payloadBytes();
        destination = bytes == 0 ? null : ShmRegion.check(region, network, offset, bytes);
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
        checkHeaderShown();
        long bytes = header.payloadBytes();
        Objects.checkFromIndexSize(first, (int) ((bytes + to.bytesEach() - 1) / to.bytesEach()), to.offsets().length);
        destination = ShmRegion.check(to.region(), network, 0, 0);
        pages = to;
        firstPage = first;
        begin(bytes);
    }

    private void checkHeaderShown() {
        link.checkOpen();
        if (!headerShown) {
            throw new IllegalStateException(
                    link + ": no header is waiting for a destination; accept follows a poll that returned one");
        }
    }

    private void begin(long bytes) {
        received = 0;
        remaining = bytes;
        headerShown = false;
        consumer.skipHeader();
        try {
            receivePiece();
        } catch (IllegalStateException e) {
            throw link.closedDuring(e);
        }
    }

    /** Receives as much as is there, one piece at most, and gives its room back together with the header's. */
    private long receivePiece() {
        long bytes = Math.min(remaining, pieceBytes);
        if (bytes > 0) {
            bytes = Math.min(bytes, consumer.available());
            if (pages == null) {
                consumer.readPayload(destination, destinationOffset, bytes);
                destinationOffset += bytes;
            } else {
                scatter(bytes);
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
    private void scatter(long bytes) {
        int pageBytes = pages.bytesEach();
        for (long done = 0; done < bytes;) {
            long at = received + done;
            long part = Math.min(bytes - done, pageBytes - at % pageBytes);
            consumer.readPayload(destination, pages.offset(firstPage, at), part);
            done += part;
        }
    }

    @Override
    public int progress() {
        link.checkOpen();
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
            throw link.closedDuring(e);
        }
    }

    /**
     * Asks, when nothing is in the ring, whether anything can follow; what the peer sent before it ended is received
     * first.
     */
    private void lookAtPeer() {
        if (!consumer.producerSaidGoodbye() && !link.peerIsGone()) {
            return;
        }
        boolean goodbye = consumer.producerSaidGoodbye();
        if (consumer.available() == 0) {
            throw goodbye && remaining == 0 ? link.closedByPeer(howFar()) : link.lost(howFar());
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
        link.close(consumer::sayGoodbye);
    }

    @Override
    public String toString() {
        return link.toString();
    }
}
