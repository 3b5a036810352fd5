package org.millrace.net.socket;

import java.nio.ByteBuffer;

/**
 * The frames of one connection whose payloads are under way: a ring, oldest first. Frames are numbered from 0 for the
 * life of the connection; a slot is a frame's place in the ring. One thread.
 */
final class FrameWindow {

    private final int limit;
    private final int mask;
    private final ByteBuffer[] views;
    private final int[] starts;
    private final int[] lengths;
    private final int[] stagedBytes;
    private final int[] missing;
    private long added;
    private long completed;

    FrameWindow(int limit) {
        this.limit = limit;
        int capacity = Integer.highestOneBit(limit * 2 - 1);
        mask = capacity - 1;
        views = new ByteBuffer[capacity];
        starts = new int[capacity];
        lengths = new int[capacity];
        stagedBytes = new int[capacity];
        missing = new int[capacity];
    }

    int capacity() {
        return mask + 1;
    }

    /**
     * Adds the newest frame; the window must not be full.
     *
     * @param view   memory of the payload; may be null if length is 0
     * @param start  of the payload in the view
     * @param staged how many of its first bytes do not move straight from or to the view
     */
    void add(ByteBuffer view, int start, int length, int staged) {
        int slot = slot(added);
        views[slot] = view;
        starts[slot] = start;
        lengths[slot] = length;
        stagedBytes[slot] = staged;
        missing[slot] = length - staged;
        added++;
    }

    /** Notes that bytes of a frame were moved. */
    void moved(long frame, int bytes) {
        missing[slot(frame)] -= bytes;
    }

    /** Whether there is an oldest frame, and none of its bytes is missing. */
    boolean oldestWhole() {
        return completed < added && missing[slot(completed)] == 0;
    }

    /** Counts the oldest frame as complete: its slot is free. */
    void retireOldest() {
        completed++;
    }

    boolean isFull() {
        return added - completed == limit;
    }

    boolean isEmpty() {
        return added == completed;
    }

    int free() {
        return limit - (int) (added - completed);
    }

    long added() {
        return added;
    }

    long completed() {
        return completed;
    }

    int slot(long frame) {
        return (int) frame & mask;
    }

    ByteBuffer view(int slot) {
        return views[slot];
    }

    int start(int slot) {
        return starts[slot];
    }

    int length(int slot) {
        return lengths[slot];
    }

    int staged(int slot) {
        return stagedBytes[slot];
    }

    /**
     * How far one stream has come through the payloads of a window: which frame's part it is moving, and how much of
     * that part is done.
     */
    static final class Cursor {

        private final FrameWindow window;
        private final Stripes stripes;
        private final int stream;
        private long frame;
        private int done;

        Cursor(FrameWindow window, Stripes stripes, int stream) {
            this.window = window;
            this.stripes = stripes;
            this.stream = stream;
        }

        /**
         * What this stream moves next: the memory from the first byte that is missing to the end of the part; null if
         * the window holds no more for this stream.
         */
        ByteBuffer next() {
            if (frame < window.completed()) {
                // Frames of which this stream carried nothing may be complete, and their slots taken by newer ones.
                frame = window.completed();
                done = 0;
            }
            while (frame < window.added()) {
                int slot = window.slot(frame);
                int length = window.length(slot);
                int start = Math.max(stripes.start(length, stream), window.staged(slot));
                int end = stripes.end(length, stream);
                if (done < end - start) {
                    int base = window.start(slot);
                    return window.view(slot).limit(base + end).position(base + start + done);
                }
                frame++;
                done = 0;
            }
            return null;
        }

        /** The frame that {@link #next} last returned a part of. */
        long frame() {
            return frame;
        }

        /** Notes that bytes of the part that {@link #next} returned were moved. */
        void moved(int bytes) {
            done += bytes;
            window.moved(frame, bytes);
        }
    }
}
