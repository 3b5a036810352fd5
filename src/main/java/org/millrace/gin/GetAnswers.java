package org.millrace.gin;

import org.millrace.gin.OutboundFrames.OutboundFrame;

/** Queue of the gets that one peer has requested and this rank has not completely answered, oldest first. */
final class GetAnswers {

    private final Window[] windows = new Window[GetPath.MAX_GETS];
    private final long[] offsets = new long[GetPath.MAX_GETS];
    private final long[] missing = new long[GetPath.MAX_GETS];
    private long asked;
    private long answered;

    boolean isFull() {
        return asked - answered == GetPath.MAX_GETS;
    }

    boolean isEmpty() {
        return asked == answered;
    }

    void add(Window window, long offset, long bytes) {
        int slot = (int) asked++ & GetPath.MAX_GETS - 1;
        window.hold();
        windows[slot] = window;
        offsets[slot] = offset;
        missing[slot] = bytes;
    }

    /**
     * Adds outbound frames with the next bytes of the answers. Stops when the answers are complete, {@code frames} is
     * full, or no staging space is free. Returns the number of added frames.
     */
    int send(OutboundFrames frames, FramePath path) {
        int work = 0;
        while (!isEmpty() && !frames.isFull() && begin(frames.next(), path)) {
            frames.add();
            work++;
        }
        return work;
    }

    private boolean begin(OutboundFrame frame, FramePath path) {
        int slot = (int) answered & GetPath.MAX_GETS - 1;
        long bytes = Math.min(missing[slot], path.chunkBytes);
        GinHeader.set(frame.header, GinHeader.GET_DATA, 0, 0, 0, answered);
        if (!path.begin(frame, windows[slot], offsets[slot], bytes)) {
            return false;
        }
        offsets[slot] += bytes;
        missing[slot] -= bytes;
        if (missing[slot] == 0) {
            windows[slot].release();
            answered++;
        }
        return true;
    }

    /** Discards all gets, because the peer that requested them has closed the connection. */
    void abandon() {
        while (!isEmpty()) {
            windows[(int) answered++ & GetPath.MAX_GETS - 1].release();
        }
    }
}
