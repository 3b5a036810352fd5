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
 * The receiving end of a ring. Payloads are copied from it, or from the sender's memory, directly to their
 * destinations, one at a time, in pieces.
 */
final class ShmReceiver extends ConnectionEnd implements FrameReceiver {

    /**
     * Maximum number of bytes of one read in place. This is worth a system call and a lookup of the peer's pages, and
     * other connections of the thread wait for it.
     */
    private static final int IN_PLACE_PIECE_BYTES = 256 << 10;

    private final ShmConnection connection;
    private final RingSide.Consumer consumer;
    private final int pieceBytes;
    private final FrameHeader header = new FrameHeader();
    /** Whether the header was shown, and its payload has no destination yet. */
    private boolean headerShown;
    private final PayloadDestination destination = new PayloadDestination();
    /** Reads payloads that stay in the peer's memory; null if none do. */
    private final @Nullable PeerMemory peer;
    /** Place of the shown header's payload, or of the payload that is being received. */
    private FrameLayout.Payload payload = FrameLayout.Payload.IN_RING;
    /** Frames that a device copies. All of them are older than the frame that is received at present. */
    private final DeviceFrames deviceFrames;
    /** Destination of a payload that the sender was asked to move; null if it is the normal destination. */
    private @Nullable DeviceRegion movedTo;
    private long movedToOffset;
    /** Address of the payload in the sender's memory. */
    private long address;
    /** Minimum length of a payload that may stay there. */
    private final long leastInPlace;
    private long received;
    private long remaining;
    private long completed;

    /** Creates a receiver on a ring. With {@code peer} it reads large payloads in the peer's memory. */
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
                return null; // frames arrive in order, and the older ones are still being copied
            }
            if (payload == FrameLayout.Payload.IN_PLACE && header.payloadBytes() < leastInPlace) {
                throw connection.corrupt("a payload of " + header.payloadBytes() + " bytes was left in place, where "
                        + "those from " + leastInPlace + " on are");
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
                    consumer.refuseDevices(); // this side's memory is not device memory
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

    /** Receives the available bytes, one piece at most, and releases their room together with the header's. */
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

    /** Reads a piece in the peer's memory. The sender gets its memory back only after all pieces are read. */
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

    /** Reads a payload that the sender moves from its device's memory to the ring's file, after the move. */
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

    /** Reads the rest of a payload from the ring's file. The sender moved it there because it needs its memory. */
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
     * Checks, when the ring is empty, whether data can follow. Data that the peer sent before its end is received
     * first.
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
        return bytes < leastInPlace; // the kernel gives no guarantee
    }

    @Override
    public void close() {
        deviceFrames.settle();
        connection.closeWith(() -> consumer.shutDown(RingLayout.CLOSED));
    }

    /**
     * Destination of the payload that is being received: one place, or several pages. It is filled in pieces, in order,
     * each from its place at the sender. One thread; set for each frame.
     */
    static final class PayloadDestination {

        private MemorySegment memory = MemorySegment.NULL;
        /** Offset of the first byte, for a single place. */
        private long offset;
        /** Pages of the payload; null for a single place. */
        private @Nullable Pages pages;
        private int firstPage;

        /** Sets a single place. The caller has checked that it lies within the memory. */
        void set(MemorySegment to, long at) {
            memory = to;
            offset = at;
            pages = null;
        }

        /** Sets pages. A page outside the memory causes an {@link IndexOutOfBoundsException}. */
        void set(MemorySegment to, Pages over, int first) {
            memory = to;
            pages = over;
            firstPage = first;
        }

        /** Copies a piece from the ring, behind the bytes received before. */
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
         * Adds destinations for a piece that is read in the sender's memory. Returns the number of bytes with a
         * destination.
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

        /** Copies missing bytes from the ring's file, where the sender moved them. Returns their number. */
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
