package org.millrace.rehearsal;

import org.millrace.trace.Recorder;

/** One direction of a connection. A step is recorded when it is done, with all its times. */
final class StepRecorder implements Recorder.Steps {

    /** Frames that are under way at a time, at the most; a power of two. */
    private static final int FRAMES = 64;
    /** As many are under way when no further one may be taken. */
    private static final int WINDOW = 8;

    private final Recording recording;
    private final int connection;
    private final long[] taken = new long[FRAMES];
    private final long[] idle = new long[FRAMES];
    private final long[] blocked = new long[FRAMES];
    private final long[] sizes = new long[FRAMES];
    private final int[] protocols = new int[FRAMES];
    private long frames;
    private long framesDone;
    /** Since when the next frame might have come: the one before it was taken, or the window was left. */
    private long free = System.nanoTime();
    /** Since when the next frame is seen and cannot be taken; 0 if it is not. */
    private long blockedSince;

    StepRecorder(Recording recording, int connection) {
        this.recording = recording;
        this.connection = connection;
    }

    @Override
    public void served() {
        recording.file();
        free = System.nanoTime();
    }

    @Override
    public void taken(long end, long size, int protocol) {
        long now = System.nanoTime();
        int frame = (int) frames++ & FRAMES - 1;
        taken[frame] = now;
        long seen = blockedSince == 0 ? now : blockedSince;
        idle[frame] = Math.max(0, seen - free);
        blocked[frame] = now - seen;
        sizes[frame] = size;
        protocols[frame] = protocol;
        blockedSince = 0;
        free = now;
    }

    @Override
    public void blocked() {
        blockedSince = blockedSince == 0 ? System.nanoTime() : blockedSince;
    }

    @Override
    public void done(long end) {
        long now = System.nanoTime();
        if (frames - framesDone == WINDOW) {
            free = now;
        }
        int frame = (int) framesDone++ & FRAMES - 1;
        recording.file()
                .append(RecordFormat.head(RecordFormat.STEP, protocols[frame], 0, connection), taken[frame], now, end,
                        sizes[frame], idle[frame], blocked[frame], 0);
    }
}
