package org.millrace.net.socket.stripes;

import java.nio.ByteBuffer;

/**
 * How far one stream has come through the payloads of a window: which frame's part it is moving, and how much of that
 * part is done.
 */
final class StripeCursor {

    private final FrameWindow window;
    private final Stripes stripes;
    private final int stream;
    private long frame;
    private int done;

    StripeCursor(FrameWindow window, Stripes stripes, int stream) {
        this.window = window;
        this.stripes = stripes;
        this.stream = stream;
    }

    /**
     * What this stream moves next.
     *
     * @return the memory, from the first byte that is missing to the end of the part; null if the window holds no more
     *         for this stream
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
