package org.millrace.bench.frames;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.bench.measure.Loop;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;

/**
 * Frames in one direction over a connection, as many in flight as the network accepts. An instance has one sending side
 * and one receiving side, which run at the same time and equally often.
 */
public final class FrameStream {

    /** Number of consecutive calls without progress after which a side regards the other side as lost. */
    private static final int TIMEOUT = 2_000_000_000;

    /** Number of frames that the receiver had acknowledged when the sending side's last run ended. */
    private volatile long acknowledged;

    /** Creates a stream. */
    public FrameStream() {}

    /**
     * Returns memory for a side's payload. All frames share it.
     *
     * @param bytes size of a payload
     * @return the memory, never freed
     */
    public static MemorySegment payload(int bytes) {
        return Arena.global().allocate(Math.max(bytes, 64), 4096);
    }

    /**
     * Returns the sending side. It offers a frame as soon as the limit and the network accept it.
     *
     * @param network network for the payload's memory
     * @param sender  sender to the other side
     * @param payload payload of each frame
     * @param bytes   size of the payload
     * @param limit   maximum number of frames in flight, 0 for no limit except the network's
     * @return the loop, which ends when the last payload may be overwritten
     */
    public Loop sending(Network network, FrameSender sender, MemorySegment payload, int bytes, int limit) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(bytes);
        return new Sending(sender, network.register(payload), header, limit);
    }

    /**
     * Returns the receiving side.
     *
     * @param network  network for the payload's memory
     * @param receiver receiver from the other side
     * @param payload  destination of each frame's payload
     * @return the loop, which ends when the sending side has received the last acknowledgement
     */
    public Loop receiving(Network network, FrameReceiver receiver, MemorySegment payload) {
        return new Receiving(receiver, network.register(payload));
    }

    private final class Sending implements Loop {

        private final FrameSender sender;
        private final MemoryRegion region;
        private final FrameHeader header;
        private final int limit;

        Sending(FrameSender sender, MemoryRegion region, FrameHeader header, int limit) {
            this.sender = sender;
            this.region = region;
            this.header = header;
            this.limit = limit;
        }

        @Override
        public long run(long count) {
            long end = sender.framesCompleted() + count;
            int patience = TIMEOUT;
            for (long offered = 0; offered < count || sender.framesCompleted() - end < 0;) {
                if (offered < count && (limit == 0 || offered - count + end - sender.framesCompleted() < limit)
                        && sender.offer(header, region, 0)) {
                    offered++;
                } else if (sender.progress() > 0) {
                    patience = TIMEOUT;
                } else if (--patience == 0) {
                    return LOST;
                } else {
                    Thread.onSpinWait();
                }
            }
            acknowledged = end;
            return count;
        }
    }

    private final class Receiving implements Loop {

        private final FrameReceiver receiver;
        private final MemoryRegion region;

        Receiving(FrameReceiver receiver, MemoryRegion region) {
            this.receiver = receiver;
            this.region = region;
        }

        @Override
        public long run(long count) {
            long end = receiver.framesCompleted() + count;
            int patience = TIMEOUT;
            // progress() acknowledges frames, so it is called until the sender has every acknowledgement.
            while (receiver.framesCompleted() - end < 0 || acknowledged - end < 0) {
                if (receiver.framesCompleted() - end < 0 && receiver.poll() != null) {
                    receiver.accept(region, 0);
                } else if (receiver.progress() > 0) {
                    patience = TIMEOUT;
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
