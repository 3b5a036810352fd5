package org.millrace.net.check;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameEnd;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.FrameQueue;

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
    private final PayloadSum sums = new PayloadSum();
    /** Accepted frames that are not complete. If a frame has pages, its offset is the index of its first page. */
    private final FrameQueue inFlight;
    /** Pages of each frame, by slot of {@link #inFlight}; null if the payload arrives in one piece. */
    private final @Nullable Pages[] pages;
    /** Number of the wrapped receiver's completed frames that are removed from {@link #inFlight}. */
    private long removed;

    /**
     * Creates a receiver that checks the payloads of the network's frames.
     *
     * @param wire the network's receiver, which is closed with the new receiver
     */
    public CheckedReceiver(FrameReceiver wire, FrameCheck check) {
        super(wire);
        this.wire = wire;
        this.check = check;
        inFlight = new FrameQueue(check.frames());
        pages = new Pages[inFlight.slots()];
        removed = wire.framesCompleted();
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
        if (header.payloadBytes() > 0 && check.covers(header) && check.sum(header) == PayloadSum.NONE) {
            check.missing(header);
        }
        pages[inFlight.add(header, region, offset)] = to;
    }

    @Override
    public int progress() {
        return wire.progress();
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
        Pages scattered = pages[inFlight.oldest()];
        long offset = inFlight.offset();
        inFlight.removeOldest();
        if (header.payloadBytes() > 0 && check.sum(header) != PayloadSum.NONE) {
            int found = scattered != null ? sums.of(scattered, (int) offset, header.payloadBytes())
                    : sums.of(Objects.requireNonNull(region), offset, header.payloadBytes());
            if (found != check.sum(header)) {
                check.changedOnArrival(header, found, CHANGED);
            }
        }
    }

    @Override
    public void close() {
        wire.close();
    }
}
