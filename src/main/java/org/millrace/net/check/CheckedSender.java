package org.millrace.net.check;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameEnd;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.FrameQueue;

/**
 * Adds to each frame the checksum of the frame's payload. Compares the payload with the checksum when the network has
 * read the payload. This sender therefore finds payloads that changed while the network used them. After a refused
 * offer the caller must offer the same frame again, because its checksum is not computed again. Payloads in a device's
 * memory are not accepted.
 */
public final class CheckedSender extends FrameEnd.Carried implements FrameSender {

    private static final String CHANGED =
            "the payload changed in its slot between the time when the frame was taken and"
                    + " the time when the network had read it: the device wrote the slot before it was free, or its data became"
                    + " visible after its counter or flag";

    private final FrameSender wire;
    private final FrameCheck check;
    private final PayloadSum sums = new PayloadSum();
    /** Frames that the network has accepted and not completed. */
    private final FrameQueue inFlight;
    /** Number of the wrapped sender's completed frames that are removed from {@link #inFlight}. */
    private long removed;
    /**
     * Checksum of the payload of the frame that the network has refused; {@link PayloadSum#NONE} if the latest offer
     * was accepted.
     */
    private int refused = PayloadSum.NONE;

    /**
     * Creates a sender that passes its frames to the network's sender.
     *
     * @param wire the network's sender, which is closed with the new sender
     */
    public CheckedSender(FrameSender wire, FrameCheck check) {
        super(wire);
        this.wire = wire;
        this.check = check;
        inFlight = new FrameQueue(check.frames());
        removed = wire.framesCompleted();
    }

    @Override
    public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        if (inFlight.isFull()) {
            return false;
        }
        if (header.payloadBytes() > 0 && check.covers(header)) {
            int sum = refused != PayloadSum.NONE ? refused
                    : sums.of(Objects.requireNonNull(region), offset, header.payloadBytes());
            check.store(header, sum);
            refused = sum;
        }
        if (!wire.offer(header, region, offset)) {
            return false;
        }
        refused = PayloadSum.NONE;
        inFlight.add(header, region, offset);
        return true;
    }

    @Override
    public int progress() {
        try {
            return wire.progress();
        } catch (ConnectionException lost) {
            // The peer ends the connection when it finds a changed payload. If the payload changed in this process, the
            // checks in this loop report the change as the cause.
            while (!inFlight.isEmpty() && check.keepsPayloads()) {
                verifyOldest();
            }
            throw lost;
        }
    }

    @Override
    public long framesCompleted() {
        long completed = wire.framesCompleted();
        while (removed != completed && !inFlight.isEmpty()) {
            removed++;
            verifyOldest();
        }
        return completed;
    }

    private void verifyOldest() {
        FrameHeader header = inFlight.header();
        MemoryRegion region = inFlight.region();
        long offset = inFlight.offset();
        inFlight.removeOldest();
        if (header.payloadBytes() > 0 && check.covers(header)) {
            int found = sums.of(Objects.requireNonNull(region), offset, header.payloadBytes());
            if (found != check.sum(header)) {
                check.changed(header, found, CHANGED);
            }
        }
    }

    @Override
    public boolean isProcessorBound() {
        return wire.isProcessorBound();
    }

    @Override
    public void settle() {
        wire.settle();
    }

    @Override
    public void close() {
        forget();
        wire.close();
    }

    @Override
    public void abort() {
        forget();
        wire.abort();
    }

    /** Forgets the frames in flight, because the owner may now free the memory of their payloads. */
    private void forget() {
        while (!inFlight.isEmpty()) {
            inFlight.removeOldest();
        }
    }
}
