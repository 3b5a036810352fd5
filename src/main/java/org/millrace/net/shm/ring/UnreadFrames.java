package org.millrace.net.shm.ring;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.Waiting;
import org.millrace.net.ConnectionException;
import org.millrace.net.DeviceRegion;

/**
 * Frames in a ring whose payloads are in the sender's memory until the receiver has read them, oldest first. One
 * thread.
 */
final class UnreadFrames {

    /** A device's copies end by themselves, within milliseconds. */
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    private final RingSide.Producer producer;
    private final long[] numbers;
    private final long[] ends;
    private final long[] places;
    private final MemorySegment[] payloads;
    private final @Nullable DeviceRegion[] devices;
    private final long[] offsets;
    private final long[] lengths;
    private int oldest;
    private int count;
    private int devicesCount;

    UnreadFrames(RingSide.Producer producer, int limit) {
        this.producer = producer;
        numbers = new long[limit];
        ends = new long[limit];
        places = new long[limit];
        payloads = new MemorySegment[limit];
        devices = new DeviceRegion[limit];
        offsets = new long[limit];
        lengths = new long[limit];
    }

    boolean isEmpty() {
        return count == 0;
    }

    boolean isFull() {
        return count == numbers.length;
    }

    /**
     * Adds a frame that was just written.
     *
     * @param number how many frames were written before it
     * @param place  where the ring says where its payload is
     */
    void add(long number, long place, MemorySegment payload, long offset, long bytes) {
        int index = (oldest + count) % numbers.length;
        numbers[index] = number;
        ends[index] = producer.position;
        places[index] = place;
        payloads[index] = payload;
        offsets[index] = offset;
        lengths[index] = bytes;
        count++;
    }

    /** Adds a frame as the other method does, whose payload is in a device's memory. */
    void add(long number, long place, DeviceRegion payload, long offset, long bytes) {
        devices[(oldest + count) % numbers.length] = payload;
        devicesCount++;
        add(number, place, MemorySegment.NULL, offset, bytes);
    }

    /** Whether any of their payloads is in a device's memory. */
    boolean hasOnDevice() {
        return devicesCount > 0;
    }

    /** How many frames were written before the oldest. */
    long oldestNumber() {
        return numbers[oldest];
    }

    /** Forgets those that the receiver has read; returns the bytes of their payloads. */
    long removeRead() {
        long read = 0;
        if (count > 0) {
            long consumed = producer.consumed();
            while (count > 0 && consumed - ends[oldest] >= 0) {
                read += lengths[oldest];
                removeOldest();
            }
        }
        return read;
    }

    /** Has the receiver find all of them in the ring's file. */
    void move() throws IOException {
        while (count > 0) {
            DeviceRegion device = devices[oldest];
            if (device == null) {
                producer.move(places[oldest], payloads[oldest], offsets[oldest], lengths[oldest]);
            } else {
                try (Arena arena = Arena.ofConfined()) {
                    MemorySegment copy = arena.allocate(lengths[oldest]);
                    copyFrom(device, copy);
                    producer.move(places[oldest], copy, 0, lengths[oldest]);
                }
            }
            removeOldest();
        }
    }

    private void copyFrom(DeviceRegion device, MemorySegment to) {
        long number = device.copies().copy(to.address(), device.address() + offsets[oldest], lengths[oldest]);
        if (!Waiting.until(() -> device.copies().isDone(number), PATIENCE)) {
            throw new ConnectionException("the device does not copy " + lengths[oldest] + " bytes to the host within "
                    + PATIENCE.toSeconds() + " s");
        }
    }

    private void removeOldest() {
        payloads[oldest] = MemorySegment.NULL;
        if (devices[oldest] != null) {
            devices[oldest] = null;
            devicesCount--;
        }
        oldest = (oldest + 1) % numbers.length;
        count--;
    }
}
