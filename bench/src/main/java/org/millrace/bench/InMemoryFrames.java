package org.millrace.bench;

import java.lang.foreign.MemorySegment;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;

/**
 * Both ends of a connection within one thread, at the lowest possible cost. A header is copied when it is offered, and
 * a payload when it is accepted. Both ends count the frame as complete at once. A benchmark over it measures the proxy.
 */
final class InMemoryFrames {

    private static final int DEPTH = 16;

    private final FrameHeader[] headers = new FrameHeader[DEPTH];
    private final MemoryRegion[] regions = new MemoryRegion[DEPTH];
    private final long[] offsets = new long[DEPTH];
    private long offered;
    private long accepted;

    InMemoryFrames() {
        for (int i = 0; i < DEPTH; i++) {
            headers[i] = new FrameHeader();
        }
    }

    /** Memory for these frames, which need no registration. */
    record Region(MemorySegment segment) implements MemoryRegion {
        @Override
        public void close() {
            // nothing was allocated
        }
    }

    FrameSender sender() {
        return new Sender();
    }

    FrameReceiver receiver() {
        return new Receiver();
    }

    private static int at(long frame) {
        return (int) frame & DEPTH - 1;
    }

    private final class Sender implements FrameSender {
        @Override
        public boolean offer(FrameHeader header, MemoryRegion region, long offset) {
            if (offered - accepted == DEPTH) {
                return false;
            }
            int at = at(offered);
            headers[at].payloadBytes(header.payloadBytes());
            for (int word = 0; word < FrameHeader.WORDS; word++) {
                headers[at].word(word, header.word(word));
            }
            regions[at] = region;
            offsets[at] = offset;
            offered++;
            return true;
        }

        @Override
        public int progress() {
            return 0;
        }

        @Override
        public long framesCompleted() {
            return accepted;
        }

        @Override
        public void close() {
            // nothing is open
        }

        @Override
        public void abort() {
            // nothing is open
        }
    }

    private final class Receiver implements FrameReceiver {
        @Override
        public FrameHeader poll() {
            return accepted < offered ? headers[at(accepted)] : null;
        }

        @Override
        public void accept(MemoryRegion region, long offset) {
            int at = at(accepted);
            MemorySegment.copy(regions[at].segment(), offsets[at], region.segment(), offset,
                    headers[at].payloadBytes());
            accepted++;
        }

        @Override
        public int progress() {
            return 0;
        }

        @Override
        public long framesCompleted() {
            return accepted;
        }

        @Override
        public void close() {
            // nothing is open
        }
    }
}
