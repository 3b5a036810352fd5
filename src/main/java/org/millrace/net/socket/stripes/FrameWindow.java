package org.millrace.net.socket.stripes;

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
     * @param length of the payload
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
}
