package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Objects;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.Waiting;
import org.millrace.net.ConnectionException;
import org.millrace.net.DeviceRegion;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.ConnectionState.ConnectionEnd;
import org.millrace.net.connection.FrameQueue;
import org.millrace.net.connection.InFlight;
import org.millrace.net.connection.NativeRegion;

/**
 * The sending end of a ring. Payloads pass through the ring in pieces. The receiver copies one piece while the sender
 * writes the next piece. A payload may therefore be longer than the ring. The header and the first piece of a frame
 * become visible together. Every call moves about one piece, so that one thread can serve many connections evenly.
 *
 * <p>
 * If the receiver can read this process's memory, a large payload stays there, and only its address passes through the
 * ring. Such a frame is complete when the receiver has read the payload.
 */
final class ShmSender extends ConnectionEnd implements FrameSender {

    private static final Logger LOG = LogManager.getLogger(ShmSender.class);
    /**
     * Maximum time that {@link #close} waits for a device's copies. The copies usually complete within milliseconds.
     * Other connections of the thread wait meanwhile.
     */
    private static final Duration CLOSE_TIMEOUT = Duration.ofMillis(100);

    private final ShmConnection connection;
    private final RingSide.Producer producer;
    private final int pieceBytes;
    private final FrameQueue waiting;
    /**
     * Memory of the payload that is being written to the ring. The last {@link #remaining} bytes of the payload are not
     * written yet.
     */
    private MemorySegment payload = MemorySegment.NULL;
    private long payloadOffset;
    private long remaining;
    /**
     * Number of frames that are completely written to the ring. If a payload stays in this process's memory, its frame
     * counts as soon as the header is in the ring.
     */
    private long written;
    /** Minimum length of a payload that stays in this process's memory until the receiver has read it. */
    private final long leastInPlace;
    private final UnreadFrames unread;
    private boolean sentShutdown;
    /** Whether the ring's file had no space for a payload. */
    private boolean noRoom;

    /** Creates a sender. The receiver must have replied to the hello. */
    public ShmSender(ShmConnection connection, ShmOptions options) {
        super(connection);
        this.connection = connection;
        connection.beforeRelease(this::abandon);
        leastInPlace =
                SingleCopyHandshake.isRead(connection.ring()) ? options.singleCopy().fromBytes() : Long.MAX_VALUE;
        producer = new RingSide.Producer(options.ringBytes(), connection);
        pieceBytes = options.pieceBytes();
        waiting = new FrameQueue(options.framesInFlight());
        unread = new UnreadFrames(producer, options.framesInFlight());
    }

    @Override
    public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        connection.checkOpen();
        long bytes = header.payloadBytes();
        if (bytes < 0 || bytes > FrameLayout.MAX_PAYLOAD_BYTES) {
            throw new IllegalArgumentException(
                    "a payload has 0 to " + FrameLayout.MAX_PAYLOAD_BYTES + " bytes, not " + bytes);
        }
        MemoryRegion memory = bytes == 0 || region instanceof DeviceRegion ? region
                : NativeRegion.check(region, connection.network(), offset, bytes);
        try {
            if (remaining == 0 && waiting.isEmpty() && begin(header, memory, offset)) {
                return true;
            }
        } catch (IllegalStateException | InternalError e) {
            throw connection.endedBy(e);
        }
        if (waiting.isFull()) {
            return false;
        }
        waiting.add(header, memory, offset);
        return true;
    }

    /**
     * Writes a header, followed by the payload's first piece or the payload's location line. Returns false if the ring
     * has no room for both, or if this process's memory already holds the maximum number of unread payloads.
     */
    private boolean begin(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        long bytes = header.payloadBytes();
        if (bytes > 0 && region instanceof DeviceRegion device) {
            return beginOnDevice(header, device, offset);
        }
        MemorySegment memory = bytes > 0 && region instanceof NativeRegion ours ? ours.view() : MemorySegment.NULL;
        if (bytes >= leastInPlace && region instanceof ShmNetwork.ShmRegion ours && ours.isReadable()) {
            if (!hasRoomInPlace()) {
                return false;
            }
            long place = producer.writeHeader(header, memory.address() + offset, null);
            unread.add(written++, place, memory, null, offset, bytes);
            producer.publish();
            return true;
        }
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

    private boolean hasRoomInPlace() {
        return !unread.isFull() && producer.hasRoom(FrameLayout.HEADER_BYTES + RingLayout.ALIGNMENT);
    }

    private boolean beginOnDevice(FrameHeader header, DeviceRegion memory, long offset) {
        Objects.checkFromIndexSize(offset, header.payloadBytes(), memory.bytes());
        if (!hasRoomInPlace()) {
            return false;
        }
        long place = producer.writeHeader(header, offset,
                Objects.requireNonNull(memory.ticket(), "payloads in memory that no other process can map"));
        unread.add(written++, place, MemorySegment.NULL, memory, offset, header.payloadBytes());
        producer.publish();
        return true;
    }

    /** {@inheritDoc} Returns false after the consumer has reported that it cannot map device memory. */
    @Override
    public boolean sendsFrom(DeviceRegion memory) {
        return memory.ticket() != null && !producer.consumerRefusesDevices();
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
            written++;
        }
        return bytes;
    }

    @Override
    public int progress() {
        connection.checkOpen();
        try {
            long read = unread.removeRead();
            if (unread.hasOnDevice() && producer.consumerRefusesDevices()) {
                settle();
            }
            long moved = 0;
            while (moved < pieceBytes) {
                if (remaining > 0) {
                    if (!producer.hasRoom(Math.min(RingLayout.align(remaining), pieceBytes))) {
                        break;
                    }
                    moved += sendPiece();
                } else if (!waiting.isEmpty() && begin(waiting.header(), waiting.region(), waiting.offset())) {
                    // Counts only the header, even if begin() has written the first piece of the payload.
                    moved += FrameLayout.HEADER_BYTES;
                    waiting.removeOldest();
                } else {
                    break;
                }
            }
            moved += read;
            if (moved == 0) {
                lookAtPeer();
            }
            return (int) Math.min(moved, Integer.MAX_VALUE);
        } catch (IllegalStateException | InternalError e) {
            throw connection.endedBy(e);
        }
    }

    private void lookAtPeer() {
        if (producer.otherState() == RingLayout.OPEN) {
            if (!connection.peerIsGone()) {
                return;
            }
            // Reads the state again, because the peer may have shut down normally between the first read and the end of
            // its process.
            if (producer.otherState() == RingLayout.OPEN) {
                throw connection.lost(howFar());
            }
        } else if (producer.consumed() == producer.position && !unread.isEmpty()) {
            // The peer has read the final payloads before its shutdown. The next call counts these payloads.
            return;
        }
        throw connection.closedByPeer(howFar(), producer.otherLostPeer());
    }

    private String howFar() {
        return "after " + framesCompleted() + " whole frames were sent"
                + (remaining == 0 ? "" : ", with " + remaining + " bytes of the next one to go");
    }

    @Override
    public long framesCompleted() {
        return unread.isEmpty() ? written : unread.oldestNumber();
    }

    /**
     * {@inheritDoc} Copies the payloads in this process's memory to the ring's file, unless the peer has already read
     * them.
     */
    @Override
    public void settle() {
        connection.checkOpen();
        if (noRoom) {
            return;
        }
        try {
            unread.removeRead();
            // The moves stop at a payload that a device is still copying. A later call continues them.
            unread.move();
        } catch (IllegalStateException | InternalError e) {
            throw connection.endedBy(e);
        } catch (IOException e) {
            noRoom = true; // Later calls of this method neither try again nor log again.
            LOG.warn("{}: payloads that the peer has not read stay where they are, as there is no room for them in "
                    + "shared memory: {}", connection, e.toString());
        }
    }

    @Override
    public void close() {
        connection.closeWith(this::finish);
    }

    @Override
    public void abort() {
        connection.close(() -> {});
    }

    private void finish() {
        try {
            while (progress() > 0) {
                // Each call of progress() sends frames, until the ring has no more room.
            }
            settle();
            if (unread.hasOnDevice() && !noRoom) {
                Waiting.until(() -> {
                    settle();
                    return !unread.hasOnDevice() || noRoom;
                }, CLOSE_TIMEOUT);
            }
            if (remaining == 0 && waiting.isEmpty() && unread.isEmpty()) {
                producer.shutDown(RingLayout.CLOSED);
                sentShutdown = true;
            }
        } catch (ConnectionException lost) {
            // The peer has closed first. The owner makes no more calls that could report the close.
        }
    }

    /**
     * Announces to the peer that this process's memory may be freed now. A peer that is reading the memory discards the
     * data. Not necessary after a shutdown message.
     */
    private void abandon() {
        if (!sentShutdown) {
            producer.abandon();
        }
    }

    /**
     * Frames in the ring with payloads that stay in the sender's memory, oldest first. A frame is removed when the
     * receiver has read its payload, or when the payload was moved to the ring's file. Used by one thread.
     */
    static final class UnreadFrames {

        private final RingSide.Producer producer;
        private final InFlight window;
        private final long[] numbers;
        private final long[] ends;
        private final long[] places;
        private final MemorySegment[] payloads;
        private final @Nullable DeviceRegion[] devices;
        private final long[] offsets;
        private final long[] lengths;
        private int devicesCount;
        /**
         * Host memory into which the device copies a payload before this side moves the payload to the ring's file;
         * null if there is no such copy.
         */
        private @Nullable Arena copyArena;
        private MemorySegment copy = MemorySegment.NULL;
        private long copyNumber;
        /**
         * Ordinal of the frame whose payload is being copied to host memory: the number of frames that left
         * {@link #window} before this frame.
         */
        private long copied;

        UnreadFrames(RingSide.Producer producer, int limit) {
            this.producer = producer;
            window = new InFlight(limit);
            int slots = window.slots();
            numbers = new long[slots];
            ends = new long[slots];
            places = new long[slots];
            payloads = new MemorySegment[slots];
            devices = new DeviceRegion[slots];
            offsets = new long[slots];
            lengths = new long[slots];
        }

        boolean isEmpty() {
            return window.isEmpty();
        }

        boolean isFull() {
            return window.isFull();
        }

        /**
         * Adds the frame that was written last.
         *
         * @param number ordinal of this frame: the number of frames that the connection sent before this frame
         * @param place  offset of the frame's location line in the ring's file
         */
        void add(long number, long place, MemorySegment payload, @Nullable DeviceRegion device, long offset,
                long bytes) {
            int slot = window.begin();
            numbers[slot] = number;
            ends[slot] = producer.position;
            places[slot] = place;
            payloads[slot] = payload;
            devices[slot] = device;
            devicesCount += device == null ? 0 : 1;
            offsets[slot] = offset;
            lengths[slot] = bytes;
        }

        /** Returns whether any of the frames has a payload in device memory. */
        boolean hasOnDevice() {
            return devicesCount > 0;
        }

        /**
         * Returns the ordinal of this object's oldest frame: the number of frames that the connection sent before it.
         */
        long oldestNumber() {
            return numbers[window.oldest()];
        }

        /** Removes the frames that the receiver has read. Returns the total length of their payloads. */
        long removeRead() {
            long read = 0;
            if (!window.isEmpty()) {
                long consumed = producer.consumed();
                while (!window.isEmpty() && consumed - ends[window.oldest()] >= 0) {
                    read += lengths[window.oldest()];
                    removeOldest();
                }
            }
            return read;
        }

        /** Moves payloads to the ring's file, oldest first. Stops at a payload that a device is still copying. */
        void move() throws IOException {
            while (!window.isEmpty()) {
                int slot = window.oldest();
                DeviceRegion device = devices[slot];
                if (device == null) {
                    producer.move(places[slot], ends[slot], payloads[slot], offsets[slot], lengths[slot]);
                } else if (isCopied(device.copies(), device.address() + offsets[slot], lengths[slot])) {
                    try {
                        producer.move(places[slot], ends[slot], copy, 0, lengths[slot]);
                    } finally {
                        endCopy();
                    }
                } else {
                    return;
                }
                removeOldest();
            }
        }

        /**
         * Returns whether the payload of the oldest frame is completely copied from the device to host memory. Begins
         * this copy if it has not begun and the device can begin a copy now.
         */
        private boolean isCopied(DeviceRegion.Copies by, long from, long bytes) {
            try (DeviceRegion.Use _ = by.enter()) {
                if (copyArena != null && copied != window.done() && by.isDone(copyNumber)) {
                    // The receiver has already read the payload, so this copy is not needed.
                    endCopy();
                }
                if (copyArena == null && by.hasRoom()) {
                    Arena arena = Arena.ofShared(); // The arena is shared, because another thread may close it.
                    copy = arena.allocate(bytes);
                    copyNumber = by.copy(copy.address(), from, bytes);
                    copyArena = arena;
                    copied = window.done();
                }
                return copyArena != null && copied == window.done() && by.isDone(copyNumber);
            }
        }

        private void endCopy() {
            Objects.requireNonNull(copyArena).close();
            copyArena = null;
            copy = MemorySegment.NULL;
        }

        private void removeOldest() {
            int slot = window.finishOldest();
            payloads[slot] = MemorySegment.NULL;
            devicesCount -= devices[slot] == null ? 0 : 1;
            devices[slot] = null;
        }
    }
}
