package org.millrace.net.link;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameEnd;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;

/**
 * A sender that plants faults. It holds one frame during a delay, or while the wrapped sender cannot take a frame. The
 * user's memory is never changed: a payload with an inverted bit is a copy.
 */
final class FaultySender extends FrameEnd.Carried implements FrameSender {

    private static final int NO_RAIL = -1;

    private final FrameSender sender;
    private final Network network;
    private final FaultyNetwork.ArmedFault[] faults;
    private final List<MemoryRegion> copies = new ArrayList<>();
    private final FrameHeader heldHeader = new FrameHeader();
    private @Nullable MemoryRegion heldRegion;
    private long heldOffset;
    private boolean holding;
    private long pollsToHold;
    private long offered;
    /** Ordinal of the frame after which the connection is cut, counted from 1; 0 if no cut is due. */
    private long cutAfter;
    /** Index of the rail that is cut as soon as the held frame is in flight; {@link #NO_RAIL} if no cut is due. */
    private int railToCut = NO_RAIL;

    FaultySender(FrameSender sender, Network network, List<FaultyNetwork.ArmedFault> faults) {
        super(sender);
        this.sender = sender;
        this.network = network;
        this.faults = faults.toArray(FaultyNetwork.ArmedFault[]::new);
    }

    @Override
    public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        if (holding || cutAfter > 0) {
            return false;
        }
        long frame = offered + 1;
        heldHeader.set(header);
        heldRegion = region;
        heldOffset = offset;
        for (FaultyNetwork.ArmedFault fault : faults) {
            prepare(fault, frame);
        }
        offered = frame;
        holding = true;
        passOn();
        return true;
    }

    private void prepare(FaultyNetwork.ArmedFault armed, long frame) {
        Fault fault = armed.fault();
        long bits = heldHeader.payloadBytes() * Byte.SIZE;
        if (armed.isDue(Fault.Kind.FLIP, frame) && fault.bit() < bits && armed.claim()) {
            flip(fault.bit());
        } else if (armed.isDue(Fault.Kind.GARBAGE, frame) && armed.claim()) {
            Random random = new Random(frame);
            for (int word = 0; word < FrameHeader.WORDS; word++) {
                heldHeader.word(word, random.nextLong());
            }
        } else if (armed.isDue(Fault.Kind.DELAY, frame) && armed.claim()) {
            pollsToHold = fault.polls();
        } else if (armed.isDue(Fault.Kind.CUT, frame) && hasRail(fault) && armed.claim()) {
            if (fault.rail() == Fault.WHOLE_CONNECTION) {
                cutAfter = frame;
            } else {
                railToCut = (int) fault.rail();
            }
        }
    }

    private boolean hasRail(Fault fault) {
        return fault.rail() == Fault.WHOLE_CONNECTION
                || sender instanceof FrameSender.Railed railed && fault.rail() < railed.rails();
    }

    /**
     * Replaces the payload by a copy with one inverted bit. The memory of the copy is never freed, because the sender
     * does not know when the network stops using it.
     */
    private void flip(long bit) {
        long bytes = heldHeader.payloadBytes();
        MemorySegment copy = Arena.global().allocate(bytes);
        MemorySegment.copy(Objects.requireNonNull(heldRegion).segment(), heldOffset, copy, 0, bytes);
        long at = bit / Byte.SIZE;
        copy.set(ValueLayout.JAVA_BYTE, at, (byte) (copy.get(ValueLayout.JAVA_BYTE, at) ^ 1 << bit % Byte.SIZE));
        heldRegion = network.register(copy);
        copies.add(heldRegion);
        heldOffset = 0;
    }

    private void passOn() {
        if (holding && pollsToHold == 0) {
            holding = false;
            holding = !sender.offer(heldHeader, heldRegion, heldOffset);
        }
    }

    @Override
    public int progress() {
        pollsToHold = Math.max(pollsToHold - 1, 0);
        passOn();
        int moved = sender.progress();
        if (railToCut >= 0 && !holding && sender instanceof FrameSender.Railed railed) {
            railed.cutRail(railToCut);
            railToCut = NO_RAIL;
        }
        if (cutAfter > 0 && sender.framesCompleted() >= cutAfter) {
            sender.abort();
            throw new ConnectionException(sender + ": connection lost (cut on purpose after frame " + cutAfter + ")");
        }
        return moved;
    }

    @Override
    public long framesCompleted() {
        return sender.framesCompleted();
    }

    @Override
    public void settle() {
        sender.settle();
    }

    @Override
    public void close() {
        try {
            pollsToHold = 0;
            passOn();
        } catch (ConnectionException lost) {
            // A loss is ignored here: the connection is closed anyway, and the owner makes no more calls that could
            // report the loss.
        }
        sender.close();
        copies.forEach(MemoryRegion::close);
    }

    @Override
    public void abort() {
        sender.abort();
        copies.forEach(MemoryRegion::close);
    }

    @Override
    public String toString() {
        return sender + " with faults";
    }
}
