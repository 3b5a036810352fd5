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
import org.millrace.net.ConnectionException;
import org.millrace.net.DeviceRegion;
import org.millrace.net.connection.InFlight;

/**
 * Frames whose payloads this side's device copies from memory of the sender's, oldest first: several at once, as the
 * device makes the copies while this thread does something else. One thread.
 *
 * <p>
 * The sender may free its memory meanwhile: what is mapped here stays. If this process has not mapped it by then, the
 * sender has moved the payload into the ring's file.
 */
final class DeviceFrames {

    private static final Logger LOG = LogManager.getLogger(DeviceFrames.class);
    private static final int LIMIT = 16;
    /** A device's copies end by themselves, within milliseconds. */
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    private final RingSide.Consumer consumer;
    private final long process;
    private final long[] numbers = new long[LIMIT];
    private final long[] ends = new long[LIMIT];
    private final InFlight window = new InFlight(LIMIT);
    private long submitted;
    private DeviceRegion.@Nullable Copies copies;
    private DeviceRegion.@Nullable Ticket ticket;
    private long mapped;

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
     * Begins to copy the payload of the header that was skipped last.
     *
     * @param from where it is in the memory of its ticket
     * @return false if it cannot be copied from there: the sender is asked to move it, and whatever follows
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
        numbers[index] = copies.copy(to.address() + offset, mapped + from, bytes);
        ends[index] = consumer.position;
        return true;
    }

    /** Gives those that were copied back to the sender; returns how many. */
    int removeCopied() {
        int copied = 0;
        if (submitted != window.begun()) { // those of other connections that were begun in the last pass go with it
            submitted = window.begun();
            Objects.requireNonNull(copies).submit(numbers[window.slot(submitted - 1)]);
        }
        while (!window.isEmpty() && Objects.requireNonNull(copies).isDone(numbers[window.oldest()])) {
            consumer.release(ends[window.finishOldest()]);
            copied++;
        }
        return copied;
    }

    /** Copies a payload to the device that the sender has moved to the ring's file, and waits for that. */
    void readMoved(DeviceRegion to, long offset, long bytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment copy = arena.allocate(bytes);
            consumer.readMoved(copy, 0, 0, bytes);
            long number = to.copies().copyAlone(to.address() + offset, copy.address(), bytes);
            if (!Waiting.until(() -> to.copies().isDone(number), PATIENCE)) {
                throw new ConnectionException(consumer.connection + ": the device does not copy " + bytes
                        + " bytes from the host within " + PATIENCE.toSeconds() + " s");
            }
        } catch (IOException e) {
            throw consumer.connection.corrupt("a payload that was moved cannot be read: " + e.getMessage());
        }
    }

    /** Waits until nothing is being copied any more: the memory is to be freed. */
    void settle() {
        if (!isEmpty()) {
            DeviceRegion.Copies last = Objects.requireNonNull(copies);
            long number = numbers[window.slot(window.begun() - 1)];
            try (DeviceRegion.Use _ = last.enter()) {
                if (!Waiting.until(() -> last.isDone(number), PATIENCE)) {
                    LOG.warn("{}: the device still copies after {} s", consumer.connection, PATIENCE.toSeconds());
                }
            }
        }
    }
}
