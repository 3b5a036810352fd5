package org.millrace.bench.frames;

import java.lang.foreign.Arena;
import org.millrace.bench.measure.Loop;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;

/**
 * One side of frames that travel back and forth. A receiver acknowledges frames only in progress(), so a side calls it
 * until the other side has every acknowledgement.
 */
public final class FrameLoop implements Loop {

    private static final long TIMEOUT = 2_000_000_000L;

    private final FrameSender sender;
    private final FrameReceiver receiver;
    private final MemoryRegion region;
    private final FrameHeader header = new FrameHeader();
    /** The side that sends first; null if this is that side. */
    private final FrameLoop first;
    /** Number of round trips that all calls of this side have requested so far. */
    private long asked;
    /** Number of round trips for which the second side's frames are acknowledged. A field of the first side only. */
    private volatile long acknowledged;

    /**
     * Creates the side that sends first.
     *
     * @param network  network for the payload's memory
     * @param sender   sender to the other side
     * @param receiver receiver from the other side
     * @param bytes    size of a payload
     */
    public FrameLoop(Network network, FrameSender sender, FrameReceiver receiver, int bytes) {
        this(network, sender, receiver, bytes, null);
    }

    private FrameLoop(Network network, FrameSender sender, FrameReceiver receiver, int bytes, FrameLoop first) {
        this.sender = sender;
        this.receiver = receiver;
        this.first = first;
        region = network.register(Arena.global().allocate(Math.max(bytes, 64), 4096));
        header.payloadBytes(bytes);
    }

    /**
     * Returns the side that sends second. It runs at the same time as this side and equally often.
     *
     * @param network  network for the payload's memory
     * @param sender   sender to this side
     * @param receiver receiver from this side
     * @return the other side
     */
    public FrameLoop second(Network network, FrameSender sender, FrameReceiver receiver) {
        return new FrameLoop(network, sender, receiver, (int) header.payloadBytes(), this);
    }

    @Override
    public long run(long count) {
        for (long i = 0; i < count; i++) {
            boolean done = first == null ? send() && receive() : receive() && send();
            if (!done) {
                return LOST;
            }
        }
        asked += count;
        if (first != null) {
            first.acknowledged = asked;
            return count;
        }
        for (long i = 0; acknowledged - asked < 0; i++) {
            if (receiver.progress() == 0) {
                Thread.onSpinWait();
            }
            if (i == TIMEOUT) {
                return LOST;
            }
        }
        return count;
    }

    private boolean send() {
        long completed = sender.framesCompleted() + 1;
        while (!sender.offer(header, region, 0)) {
            sender.progress();
        }
        for (long i = 0; sender.framesCompleted() - completed < 0; i++) {
            if (sender.progress() + receiver.progress() == 0) {
                Thread.onSpinWait();
            }
            if (i == TIMEOUT) {
                return false;
            }
        }
        return true;
    }

    private boolean receive() {
        long completed = receiver.framesCompleted() + 1;
        FrameHeader next = receiver.poll();
        for (long i = 0; next == null; i++) {
            if (receiver.progress() == 0) {
                Thread.onSpinWait();
            }
            next = receiver.poll();
            if (i == TIMEOUT) {
                return false;
            }
        }
        receiver.accept(region, 0);
        for (long i = 0; receiver.framesCompleted() - completed < 0; i++) {
            if (receiver.progress() == 0) {
                Thread.onSpinWait();
            }
            if (i == TIMEOUT) {
                return false;
            }
        }
        return true;
    }
}
