package org.millrace.net.check;

import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameEnd;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;

/**
 * Adds to each frame the checksum of the frame's payload. Compares the payload with the checksum when the network has
 * read the payload. This sender therefore finds payloads that changed while the network used them. After a refused
 * offer the caller must offer the same frame again, because its checksum is not computed again. Payloads in a device's
 * memory are not accepted.
 */
final class CheckedSender extends FrameEnd.Carried implements FrameSender {

    private static final String CHANGED =
            "the payload changed in its slot between the time when the frame was taken and"
                    + " the time when the network had read it: the device wrote the slot before it was free, or its data became"
                    + " visible after its counter or flag";

    private final FrameSender wire;
    private final FrameCheck check;
    /** Frames that the network has accepted and not completed. */
    private final CheckedFrames inFlight;
    /** Checksum of the refused frame's payload; {@link PayloadSum#NONE} if the latest offer was accepted. */
    private int refused = PayloadSum.NONE;

    CheckedSender(FrameSender wire, FrameCheck check) {
        super(wire);
        this.wire = wire;
        this.check = check;
        inFlight = new CheckedFrames(check, false, CHANGED, wire.framesCompleted());
    }

    @Override
    public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        if (inFlight.isFull()) {
            return false;
        }
        if (check.covers(header)) {
            refused = refused != PayloadSum.NONE ? refused : inFlight.sum(region, offset, header.payloadBytes());
            check.store(header, refused);
        }
        if (!wire.offer(header, region, offset)) {
            return false;
        }
        refused = PayloadSum.NONE;
        inFlight.add(header, null, region, offset);
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
                inFlight.verifyOldest();
            }
            throw lost;
        }
    }

    @Override
    public long framesCompleted() {
        return inFlight.verifyCompleted(wire.framesCompleted());
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
        inFlight.forget();
        wire.close();
    }

    @Override
    public void abort() {
        inFlight.forget();
        wire.abort();
    }
}
