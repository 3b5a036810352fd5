package org.millrace.net.shm.ring;

import java.lang.foreign.MemorySegment;
import org.millrace.net.FrameHeader;

/** Frames that were offered while the ring had no room for them, oldest first. One thread. */
final class WaitingFrames {

    private final FrameHeader[] headers;
    private final MemorySegment[] payloads;
    private final long[] offsets;
    private int oldest;
    private int count;

    WaitingFrames(int limit) {
        headers = new FrameHeader[limit];
        for (int i = 0; i < limit; i++) {
            headers[i] = new FrameHeader();
        }
        payloads = new MemorySegment[limit];
        offsets = new long[limit];
    }

    boolean isEmpty() {
        return count == 0;
    }

    boolean isFull() {
        return count == headers.length;
    }

    /** Adds a frame: the header is copied. */
    void add(FrameHeader header, MemorySegment payload, long offset) {
        int slot = (oldest + count) % headers.length;
        headers[slot].payloadBytes(header.payloadBytes());
        for (int i = 0; i < FrameHeader.WORDS; i++) {
            headers[slot].word(i, header.word(i));
        }
        payloads[slot] = payload;
        offsets[slot] = offset;
        count++;
    }

    FrameHeader oldestHeader() {
        return headers[oldest];
    }

    MemorySegment oldestPayload() {
        return payloads[oldest];
    }

    long oldestOffset() {
        return offsets[oldest];
    }

    void removeOldest() {
        payloads[oldest] = null;
        oldest = (oldest + 1) % headers.length;
        count--;
    }
}
