package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.net.DeviceRegion;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.FrameReceiver.Pages;
import org.millrace.net.connection.ConnectionState.ConnectionEnd;
import org.millrace.net.connection.NativeRegion;

/**
 * The receiving end of a ring. It receives one payload at a time, in pieces. It copies each piece from the ring, or
 * from the sender's memory, directly to the destination.
 */
final class ShmReceiver extends ConnectionEnd implements FrameReceiver {

    /**
     * Maximum number of bytes of one read in the peer's memory. Shorter reads would cost more system calls and page
     * lookups. Longer reads would cost time, because the thread's other connections wait for each read.
     */
    private static final int IN_PLACE_PIECE_BYTES = 256 << 10;

    private final ShmConnection connection;
    private final RingSide.Consumer consumer;
    private final int pieceBytes;
    private final FrameHeader header = new FrameHeader();
    /** Whether {@link #poll} has returned a header whose payload has no destination yet. */
    private boolean headerShown;
    private final PayloadDestination destination = new PayloadDestination();
    /** Reader of payloads that stay in the peer's memory; null if all payloads pass through the ring. */
    private final @Nullable PeerMemory peer;
    /**
     * Location of the payload that is being received, or of the next payload if {@link #poll} has returned its header.
     */
    private FrameLayout.Payload payload = FrameLayout.Payload.IN_RING;
    /** Frames with payloads that a device copies. These frames are older than the frame that is being received. */
    private final DeviceFrames deviceFrames;
    /**
     * Device memory that receives a payload after the sender has moved the payload to the ring's file; null if the
     * payload's destination is {@link #destination}.
     */
    private @Nullable DeviceRegion movedTo;
    private long movedToOffset;
    /** Address of the payload in the sender's memory, or its offset in the sender's device memory. */
    private long address;
    /** Minimum length of a payload that may stay in the sender's memory. */
    private final long leastInPlace;
    private long received;
    private long remaining;
    private long completed;

    /** @param peer reader of large payloads in the peer's memory; null if all payloads pass through the ring */
    public ShmReceiver(ShmConnection connection, int ringBytes, int pieceBytes, @Nullable PeerMemory peer) {
        super(connection);
        this.peer = peer;
        leastInPlace = peer == null ? Long.MAX_VALUE : connection.ring().getLong(RingLayout.LEAST_IN_PLACE);
        this.connection = connection;
        this.pieceBytes = pieceBytes;
        consumer = new RingSide.Consumer(ringBytes, connection);
        deviceFrames = new DeviceFrames(consumer, connection.peerProcess());
    }

    @Override
    public @Nullable FrameHeader poll() {
        connection.checkOpen();
        if (headerShown) {
            return header;
        }
        if (remaining > 0 || deviceFrames.isFull()) {
            return null;
        }
        try {
            if (consumer.available() == 0) {
                if (deviceFrames.isEmpty()) {
                    lookAtPeer();
                }
                return null;
            }
            payload = consumer.readHeader(header);
            if (payload != FrameLayout.Payload.ON_DEVICE && !deviceFrames.isEmpty()) {
                // Frames are completed in the order of their arrival, and the device is still copying the payloads of
                // older frames.
                return null;
            }
            if (payload == FrameLayout.Payload.IN_PLACE && header.payloadBytes() < leastInPlace) {
                throw connection.corrupt("a payload of " + header.payloadBytes() + " bytes was left in place, where "
                        + "only payloads from " + leastInPlace + " bytes on may be left");
            }
        } catch (IllegalStateException | InternalError e) {
            throw connection.endedBy(e);
        }
        headerShown = true;
        return header;
    }

    @Override
    public void accept(@Nullable MemoryRegion region, long offset) {
        connection.checkAccept(headerShown);
        long bytes = header.payloadBytes();
        if (isOnDevice() && region instanceof DeviceRegion device) {
            acceptOnDevice(device, offset, bytes);
            return;
        }
        destination.set(bytes == 0 ? MemorySegment.NULL
                : NativeRegion.check(region, connection.network(), offset, bytes).view(), offset);
        begin(bytes);
    }

    @Override
    public boolean isOnDevice() {
        return headerShown && payload == FrameLayout.Payload.ON_DEVICE;
    }

    private void acceptOnDevice(DeviceRegion device, long offset, long bytes) {
        headerShown = false;
        try {
            address = consumer.skipHeaderInPlace();
            if (consumer.isMoved() || !deviceFrames.begin(device, offset, address, bytes)) {
                movedTo = device;
                movedToOffset = Objects.checkFromIndexSize(offset, bytes, device.bytes());
                received = 0;
                remaining = bytes;
            }
        } catch (IllegalStateException | InternalError e) {
            throw connection.endedBy(e);
        }
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
        destination.set(NativeRegion.check(to.region(), connection.network(), 0, 0).view(), to, first);
        begin(bytes);
    }

    private void begin(long bytes) {
        received = 0;
        remaining = bytes;
        headerShown = false;
        try {
            if (payload != FrameLayout.Payload.IN_RING) {
                address = consumer.skipHeaderInPlace();
                if (payload == FrameLayout.Payload.ON_DEVICE) {
                    // The payload is in device memory, and its destination is in host memory. The sender must therefore
                    // move the payload to the ring's file.
                    consumer.refuseDevices();
                    return;
                }
                readPiece();
                return;
            }
            consumer.skipHeader();
            receivePiece();
        } catch (IllegalStateException | InternalError e) {
            throw connection.endedBy(e);
        }
    }

    /**
     * Copies the available bytes from the ring, at most one piece. Releases these bytes and the header to the sender.
     */
    private long receivePiece() {
        long bytes = Math.min(remaining, pieceBytes);
        if (bytes > 0) {
            bytes = Math.min(bytes, consumer.available());
            destination.fill(consumer, received, bytes);
            received += bytes;
            remaining -= bytes;
        }
        consumer.release();
        if (remaining == 0) {
            completed++;
        }
        return bytes;
    }

    /**
     * Reads a piece of a payload in the peer's memory. Releases the frame to the sender after the last piece, so that
     * the sender may reuse the payload's memory.
     */
    private long readPiece() {
        if (payload == FrameLayout.Payload.ON_DEVICE) {
            return readFromDevice();
        }
        PeerMemory from = Objects.requireNonNull(peer);
        long bytes = destination.name(from, received, Math.min(remaining, IN_PLACE_PIECE_BYTES));
        long read = consumer.readInPlace(from, address + received, bytes);
        if (read == RingSide.Consumer.MOVED) {
            read = readMoved();
        } else if (consumer.otherState() == RingLayout.ABANDONED || PeerMemory.isGone(read)) {
            throw connection.lost(howFar());
        } else if (read <= 0 || read > bytes) {
            throw connection.unreadable(address + received, bytes, PeerMemory.describe(read), howFar());
        }
        return read(read);
    }

    private long read(long bytes) {
        received += bytes;
        remaining -= bytes;
        if (remaining == 0) {
            completed++;
            consumer.release();
        }
        return bytes;
    }

    /**
     * Reads a payload of the sender's device from the ring's file. Returns 0 until the sender has moved the payload to
     * that file.
     */
    private long readFromDevice() {
        boolean over = consumer.otherState() == RingLayout.ABANDONED || connection.peerIsGone();
        if (!consumer.isMoved()) {
            if (over) {
                throw connection.lost(howFar());
            }
            return 0;
        }
        DeviceRegion device = movedTo;
        if (device == null) {
            return read(readMoved());
        }
        if (!deviceFrames.readMoved(device, movedToOffset, remaining)) {
            return 0;
        }
        movedTo = null;
        return read(remaining);
    }

    /**
     * Reads the rest of a payload from the ring's file. The sender has moved the payload to that file, to reuse its own
     * memory.
     */
    private long readMoved() {
        try {
            return destination.fillMoved(consumer, received, remaining);
        } catch (IOException e) {
            throw connection.corrupt("a payload that was moved cannot be read: " + e.getMessage());
        }
    }

    @Override
    public int progress() {
        connection.checkOpen();
        int copied = 0;
        if (!deviceFrames.isEmpty()) {
            copied = deviceFrames.removeCopied();
            completed += copied;
        }
        if (remaining == 0 || !deviceFrames.isEmpty()) {
            return copied;
        }
        try {
            if (payload != FrameLayout.Payload.IN_RING) {
                return (int) readPiece();
            }
            if (consumer.available() == 0) {
                lookAtPeer();
                return 0;
            }
            return (int) receivePiece();
        } catch (IllegalStateException | InternalError e) {
            throw connection.endedBy(e);
        }
    }

    /**
     * Checks, while the ring is empty, whether the connection was closed or lost. Throws only if the ring contains no
     * data that the peer wrote before the close or the loss.
     */
    private void lookAtPeer() {
        if (consumer.otherState() == RingLayout.OPEN && !connection.peerIsGone()) {
            return;
        }
        long state = consumer.otherState();
        if (consumer.available() == 0) {
            String lostPeer = state == RingLayout.OPEN ? null : consumer.otherLostPeer();
            throw lostPeer != null || state == RingLayout.CLOSED && remaining == 0
                    ? connection.closedByPeer(howFar(), lostPeer)
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
    public boolean storesWholeWords(long bytes) {
        // The operating system reads a payload in the sender's memory, and does not guarantee to store whole words.
        return bytes < leastInPlace;
    }

    @Override
    public void close() {
        deviceFrames.settle();
        connection.closeWith(() -> consumer.shutDown(RingLayout.CLOSED));
    }

    /**
     * Destination of the payload that is being received: contiguous memory, or several pages. The payload arrives in
     * pieces, from its beginning to its end. Each piece may come from the ring, the sender's memory or the ring's file.
     * The destination is set again for each frame. Used by one thread.
     */
    static final class PayloadDestination {

        private MemorySegment memory = MemorySegment.NULL;
        /** Offset of the payload's first byte in the contiguous memory. */
        private long offset;
        /** Pages of the payload; null for contiguous memory. */
        private @Nullable Pages pages;
        private int firstPage;

        /** Makes contiguous memory the destination. The caller has checked that the payload fits. */
        void set(MemorySegment to, long at) {
            memory = to;
            offset = at;
            pages = null;
        }

        /**
         * Makes pages of memory the destination. A page outside the memory causes an {@link IndexOutOfBoundsException}
         * when a piece for this page is received.
         */
        void set(MemorySegment to, Pages over, int first) {
            memory = to;
            pages = over;
            firstPage = first;
        }

        /**
         * Copies a piece from the ring.
         *
         * @param received number of bytes of the payload that were received before
         */
        void fill(RingSide.Consumer from, long received, long bytes) {
            Pages to = pages;
            if (to == null) {
                from.readPayload(memory, offset + received, bytes);
                return;
            }
            int pageBytes = to.bytesEach();
            for (long done = 0; done < bytes;) {
                long at = received + done;
                long part = Math.min(bytes - done, pageBytes - at % pageBytes);
                from.readPayload(memory, to.offset(firstPage, at), part);
                done += part;
            }
        }

        /**
         * Passes a piece's destinations to a reader, which will copy the piece from the sender's memory. Returns the
         * length of the piece. A piece that needs too many pages is shortened.
         *
         * @param received number of the payload's bytes that were received before
         */
        long name(PeerMemory reader, long received, long bytes) {
            Pages to = pages;
            if (to == null) {
                reader.add(memory, offset + received, bytes);
                return bytes;
            }
            int pageBytes = to.bytesEach();
            long named = 0;
            for (int parts = 0; parts < PeerMemory.MAX_PARTS && named < bytes; parts++) {
                long at = received + named;
                long part = Math.min(bytes - named, pageBytes - at % pageBytes);
                reader.add(memory, Objects.checkFromIndexSize(to.offset(firstPage, at), part, memory.byteSize()), part);
                named += part;
            }
            return named;
        }

        /**
         * Copies bytes from the ring's file: all missing bytes, or the missing bytes of one page. Returns the number of
         * copied bytes.
         *
         * @param received number of the payload's bytes that were received before
         */
        long fillMoved(RingSide.Consumer from, long received, long missing) throws IOException {
            Pages to = pages;
            if (to == null) {
                from.readMoved(memory, offset + received, received, missing);
                return missing;
            }
            long part = Math.min(missing, to.bytesEach() - received % to.bytesEach());
            from.readMoved(memory, to.offset(firstPage, received), received, part);
            return part;
        }
    }
}
