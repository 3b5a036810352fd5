package org.millrace.gin;

/** What one peer asked for and has not been sent yet, oldest first. */
final class Answers {

    private final Window[] windows = new Window[Gets.MOST];
    private final long[] offsets = new long[Gets.MOST];
    private final long[] missing = new long[Gets.MOST];
    private long asked;
    private long answered;

    boolean isFull() {
        return asked - answered == Gets.MOST;
    }

    boolean isEmpty() {
        return asked == answered;
    }

    void add(Window window, long offset, long bytes) {
        int slot = (int) asked++ & Gets.MOST - 1;
        window.hold();
        windows[slot] = window;
        offsets[slot] = offset;
        missing[slot] = bytes;
    }

    /** Begins a frame with the next bytes of the oldest answer; false if they cannot be staged now. */
    boolean begin(Outgoing frame, long chunkBytes, StagingOut staging) {
        int slot = (int) answered & Gets.MOST - 1;
        long bytes = Math.min(missing[slot], chunkBytes);
        GinHeader.set(frame.header, GinHeader.GET_DATA, 0, 0, 0, answered);
        if (!frame.begin(staging, windows[slot], offsets[slot], bytes)) {
            return false;
        }
        offsets[slot] += bytes;
        missing[slot] -= bytes;
        if (missing[slot] == 0) {
            windows[slot].letGo();
            answered++;
        }
        return true;
    }

    /** Whoever asked has left. */
    void abandon() {
        while (!isEmpty()) {
            windows[(int) answered++ & Gets.MOST - 1].letGo();
        }
    }
}
