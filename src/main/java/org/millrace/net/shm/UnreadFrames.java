package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.Waiting;
import org.millrace.net.ConnectionException;
import org.millrace.net.DeviceRegion;
import org.millrace.net.connection.InFlight;

/**
 * Frames in a ring whose payloads are in the sender's memory until the receiver has read them, oldest first. One
 * thread.
 */
final class UnreadFrames {

    /** A device's copies end by themselves, within milliseconds. */
    private static final Duration PATIENCE = Duration.ofSeconds(10);

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
     * Adds a frame that was just written, after so many others; the ring has the place of its payload at this address.
     */
    void add(long number, long place, MemorySegment payload, @Nullable DeviceRegion device, long offset, long bytes) {
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

    /** Whether any of their payloads is in a device's memory. */
    boolean hasOnDevice() {
        return devicesCount > 0;
    }

    /** How many frames were written before the oldest. */
    long oldestNumber() {
        return numbers[window.oldest()];
    }

    /** Forgets those that the receiver has read; returns the bytes of their payloads. */
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

    /** Has the receiver find all of them in the ring's file. */
    void move() throws IOException {
        while (!window.isEmpty()) {
            int slot = window.oldest();
            DeviceRegion device = devices[slot];
            if (device == null) {
                producer.move(places[slot], payloads[slot], offsets[slot], lengths[slot]);
            } else {
                try (Arena arena = Arena.ofConfined(); DeviceRegion.Use _ = device.copies().enter()) {
                    MemorySegment copy = arena.allocate(lengths[slot]);
                    copyFrom(device, slot, copy);
                    producer.move(places[slot], copy, 0, lengths[slot]);
                }
            }
            removeOldest();
        }
    }

    private void copyFrom(DeviceRegion device, int slot, MemorySegment to) {
        long number = device.copies().copy(to.address(), device.address() + offsets[slot], lengths[slot]);
        if (!Waiting.until(() -> device.copies().isDone(number), PATIENCE)) {
            throw new ConnectionException("the device does not copy " + lengths[slot] + " bytes to the host within "
                    + PATIENCE.toSeconds() + " s");
        }
    }

    private void removeOldest() {
        int slot = window.finishOldest();
        payloads[slot] = MemorySegment.NULL;
        devicesCount -= devices[slot] == null ? 0 : 1;
        devices[slot] = null;
    }
}
