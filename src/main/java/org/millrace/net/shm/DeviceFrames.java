package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Objects;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.agent.Waiting;
import org.millrace.net.DeviceRegion;
import org.millrace.net.connection.InFlight;

/**
 * Queue of received frames, oldest first. This side's device copies the payloads of these frames from the sender's
 * device memory. Several copies are in progress at a time, while the thread does other work. Used by one thread.
 *
 * <p>
 * The sender may free its memory while a copy is in progress, because this process's mapping of that memory stays
 * valid. If this process has not mapped that memory yet, the sender first copies the payload to the ring's file.
 */
final class DeviceFrames {

    private static final Logger LOG = LogManager.getLogger(DeviceFrames.class);
    private static final int LIMIT = 16;
    /** Maximum time to wait for a device's copies. The copies usually complete within milliseconds. */
    private static final Duration TIMEOUT = Duration.ofSeconds(10);

    private final RingSide.Consumer consumer;
    private final long process;
    /**
     * For each slot of {@link #window}: target address of the copy of the slot's payload. The next three arrays contain
     * the copy's source address, its length in bytes, and its number on the device. The number is valid when the copy
     * has begun. The fifth array contains the position in the ring after the slot's frame.
     */
    private final long[] targets = new long[LIMIT];
    private final long[] sources = new long[LIMIT];
    private final long[] lengths = new long[LIMIT];
    private final long[] numbers = new long[LIMIT];
    private final long[] ends = new long[LIMIT];
    private final InFlight window = new InFlight(LIMIT);
    /**
     * Number of frames whose copies have begun since this object was created. The copies of the other frames begin when
     * the device has room.
     */
    private long copying;
    private long submitted;
    private DeviceRegion.@Nullable Copies copies;
    private DeviceRegion.@Nullable Ticket ticket;
    private long mapped;
    /** Host memory with a payload from the ring's file, while the device copies this payload; null at other times. */
    private @Nullable Arena moving;
    private long movingNumber;

    DeviceFrames(RingSide.Consumer consumer, long process) {
        this.consumer = consumer;
        this.process = process;
    }

    boolean isEmpty() {
        return window.isEmpty();
    }

    boolean isFull() {
        return window.isFull();
    }

    /**
     * Adds the frame whose header was skipped most recently. The copy of the frame's payload to the device begins when
     * the device has room for another copy.
     *
     * @param from offset of the payload in the device memory that the ticket in the frame's location line describes
     * @return false if this process cannot map the sender's device memory. The sender is then asked to copy this
     *         payload and all later payloads of device memory to the ring's file.
     */
    boolean begin(DeviceRegion to, long offset, long from, long bytes) {
        if (ticket == null || !consumer.isOf(ticket)) {
            DeviceRegion.Ticket next = consumer.ticket();
            try {
                mapped = to.map(process, next);
            } catch (MillraceException e) {
                LOG.info("{}: payloads of the peer's device go through the host's memory: {}", consumer.connection,
                        e.getMessage());
                consumer.refuseDevices();
                return false;
            }
            ticket = next;
        }
        if (from < 0 || from > ticket.allocated() - ticket.offset() - bytes) {
            throw consumer.connection.corrupt("a payload of " + bytes + " bytes at " + from
                    + " does not lie within the device's memory of " + ticket);
        }
        Objects.checkFromIndexSize(offset, bytes, to.bytes());
        int index = window.begin();
        copies = to.copies();
        targets[index] = to.address() + offset;
        sources[index] = mapped + from;
        lengths[index] = bytes;
        ends[index] = consumer.position;
        beginCopies(copies);
        return true;
    }

    private void beginCopies(DeviceRegion.Copies by) {
        while (copying != window.begun() && by.hasRoom()) {
            int index = window.slot(copying++);
            numbers[index] = by.copy(targets[index], sources[index], lengths[index]);
        }
    }

    /**
     * Removes the oldest frames with complete copies, up to the first frame with an incomplete copy. Releases to the
     * sender the bytes that the removed frames occupied in the ring. Returns the number of removed frames.
     */
    int removeCopied() {
        int copied = 0;
        DeviceRegion.Copies by = Objects.requireNonNull(copies);
        // A copy is submitted one pass after the copy has begun. The device's batch can then also contain copies of
        // other connections.
        if (submitted != copying) {
            submitted = copying;
            by.submit(numbers[window.slot(submitted - 1)]);
        }
        beginCopies(by);
        while (window.done() != copying && by.isDone(numbers[window.oldest()])) {
            consumer.release(ends[window.finishOldest()]);
            copied++;
        }
        return copied;
    }

    /**
     * Copies a payload from the ring's file to the device, after the sender has moved the payload to that file. Does
     * not block.
     *
     * @return true if the copy is complete; false if the caller must call again in a later pass
     */
    boolean readMoved(DeviceRegion to, long offset, long bytes) {
        copies = to.copies();
        if (moving == null && copies.hasRoom()) {
            beginMoved(copies, to.address() + offset, bytes);
        }
        if (moving == null || !copies.isDone(movingNumber)) {
            return false;
        }
        moving.close();
        moving = null;
        return true;
    }

    private void beginMoved(DeviceRegion.Copies by, long to, long bytes) {
        Arena arena = Arena.ofShared(); // The arena is shared, because another thread may close it.
        try {
            MemorySegment copy = arena.allocate(bytes);
            consumer.readMoved(copy, 0, 0, bytes);
            movingNumber = by.copyAlone(to, copy.address(), bytes);
            moving = arena;
        } catch (IOException e) {
            throw consumer.connection.corrupt("a payload that was moved cannot be read: " + e.getMessage());
        } finally {
            if (moving == null) {
                arena.close();
            }
        }
    }

    /**
     * Waits until no copy is in progress. Called before the memory that the copies access is freed. Copies that have
     * not begun are abandoned.
     */
    void settle() {
        boolean copiesFrames = window.done() != copying;
        if (!copiesFrames && moving == null) {
            return;
        }
        DeviceRegion.Copies last = Objects.requireNonNull(copies);
        long number = moving != null ? movingNumber : numbers[window.slot(copying - 1)];
        try (DeviceRegion.Use _ = last.enter()) {
            if (!Waiting.until(() -> last.isDone(number), TIMEOUT)) {
                LOG.warn("{}: the device still copies after {} s{}", consumer.connection, TIMEOUT.toSeconds(),
                        moving == null ? "" : "; the memory that it copies from stays allocated");
            } else if (moving != null) {
                moving.close();
                moving = null;
            }
        }
    }
}
