package org.millrace.net.shm.ring;

import java.io.IOException;
import java.lang.foreign.MemorySegment;

/**
 * Frames in a ring whose payloads are in the sender's memory until the receiver has read them, oldest first. One
 * thread.
 */
final class UnreadFrames {

    private final RingSide.Producer producer;
    private final long[] numbers;
    private final long[] ends;
    private final long[] places;
    private final MemorySegment[] payloads;
    private final long[] offsets;
    private final long[] lengths;
    private int oldest;
    private int count;

    UnreadFrames(RingSide.Producer producer, int limit) {
        this.producer = producer;
        numbers = new long[limit];
        ends = new long[limit];
        places = new long[limit];
        payloads = new MemorySegment[limit];
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
            producer.move(places[oldest], payloads[oldest], offsets[oldest], lengths[oldest]);
            removeOldest();
        }
    }

    private void removeOldest() {
        payloads[oldest] = MemorySegment.NULL;
        oldest = (oldest + 1) % numbers.length;
        count--;
    }
}
