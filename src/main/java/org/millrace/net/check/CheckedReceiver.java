package org.millrace.net.check;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameEnd;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;

/**
 * Compares each received payload with the checksum in its frame's header, before {@link #framesCompleted} counts the
 * frame. This receiver reports that it does not store whole words. LL lines therefore arrive in a buffer that no kernel
 * polls.
 */
public final class CheckedReceiver extends FrameEnd.Carried implements FrameReceiver {

    private static final String CHANGED =
            "the received payload differs from the payload that was sent: it changed on the"
                    + " network, or in the sender's slot if the sender reports that";

    private final FrameReceiver wire;
    private final FrameCheck check;
    /** Accepted frames that are not complete. */
    private final CheckedFrames inFlight;

    CheckedReceiver(FrameReceiver wire, FrameCheck check) {
        super(wire);
        this.wire = wire;
        this.check = check;
        inFlight = new CheckedFrames(check, false, CHANGED, wire.framesCompleted());
    }

    /** {@return the check of this connection} */
    public FrameCheck check() {
        return check;
    }

    @Override
    public @Nullable FrameHeader poll() {
        return inFlight.isFull() ? null : wire.poll();
    }

    @Override
    public void accept(@Nullable MemoryRegion region, long offset) {
        add(null, region, offset);
        wire.accept(region, offset);
    }

    @Override
    public boolean scatters() {
        return wire.scatters();
    }

    @Override
    public void acceptScattered(Pages to, int first) {
        add(to, null, first);
        wire.acceptScattered(to, first);
    }

    private void add(@Nullable Pages to, @Nullable MemoryRegion region, long offset) {
        FrameHeader header = Objects.requireNonNull(wire.poll());
        if (check.covers(header) && !check.isSummed(header)) {
            check.missing(header);
        }
        inFlight.add(header, to, region, offset);
    }

    @Override
    public int progress() {
        return wire.progress();
    }

    @Override
    public long framesCompleted() {
        return inFlight.verifyCompleted(wire.framesCompleted());
    }

    @Override
    public void close() {
        wire.close();
    }
}
