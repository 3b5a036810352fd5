package org.millrace.bench.frames;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.bench.measure.Loop;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;

/** Frames one way, as many of them under way as the network takes: the side that sends and the side that receives. */
public final class FrameStream {

    /** Calls between two of which nothing moves, after which the other side is believed dead. */
    private static final int PATIENCE = 2_000_000_000;

    private FrameStream() {}

    /**
     * Memory for a side's payload, which is that of all its frames.
     *
     * @param bytes of a payload
     * @return the memory, never freed
     */
    public static MemorySegment payload(int bytes) {
        return Arena.global().allocate(Math.max(bytes, 64), 4096);
    }

    /**
     * The side that sends: a frame is offered as soon as the network takes it.
     *
     * @param network for the payload's memory
     * @param sender  to the other side
     * @param payload what each frame carries
     * @param bytes   of it
     * @return the loop; it ends when the last payload may be overwritten
     */
    public static Loop sending(Network network, FrameSender sender, MemorySegment payload, int bytes) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(bytes);
        return new Sending(sender, network.register(payload), header);
    }

    /**
     * The side that receives.
     *
     * @param network  for the payload's memory
     * @param receiver from the other side
     * @param payload  where each frame's payload goes
     * @return the loop; it ends when the last payload is there
     */
    public static Loop receiving(Network network, FrameReceiver receiver, MemorySegment payload) {
        return new Receiving(receiver, network.register(payload));
    }

    private record Sending(FrameSender sender, MemoryRegion region, FrameHeader header) implements Loop {
        @Override
        public long run(long count) {
            long end = sender.framesCompleted() + count;
            int patience = PATIENCE;
            for (long offered = 0; offered < count || sender.framesCompleted() - end < 0;) {
                if (offered < count && sender.offer(header, region, 0)) {
                    offered++;
                } else if (sender.progress() > 0) {
                    patience = PATIENCE;
                } else if (--patience == 0) {
                    return LOST;
                } else {
                    Thread.onSpinWait();
                }
            }
            return count;
        }
    }

    private record Receiving(FrameReceiver receiver, MemoryRegion region) implements Loop {
        @Override
        public long run(long count) {
            long end = receiver.framesCompleted() + count;
            int patience = PATIENCE;
            while (receiver.framesCompleted() - end < 0) {
                if (receiver.poll() != null) {
                    receiver.accept(region, 0);
                } else if (receiver.progress() > 0) {
                    patience = PATIENCE;
                } else if (--patience == 0) {
                    return LOST;
                } else {
                    Thread.onSpinWait();
                }
            }
            return count;
        }
    }
}
