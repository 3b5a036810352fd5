package org.millrace.plugin.takeover;

import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameEnd;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.InFlight;

/**
 * Receives payloads into a device's memory. The network (the wire) writes to this memory directly under two conditions:
 * the peer's payloads also lie in a device's memory, and the network can access both memories. Otherwise the payloads
 * pass through host memory, with several copies in flight. Used by one thread.
 */
final class StagedReceiver extends FrameEnd.Carried implements FrameReceiver {

    private static final int LIMIT = 16;

    private final FrameReceiver wire;
    private final Staging staging;
    /** Number of frames that the network had received before this object was created. */
    private final long first;
    /**
     * Number of bytes to copy for an accepted, incomplete frame, indexed by the frame's slot in {@link #window}; 0 if
     * nothing is copied. The next two arrays contain the offset of these bytes, and the number of the copy.
     */
    private final long[] bytes = new long[LIMIT];
    private final long[] offsets = new long[LIMIT];
    private final long[] copies = new long[LIMIT];
    /** Accepted frames that are not complete. */
    private final InFlight window = new InFlight(LIMIT);
    /** Number of frames after the first {@link #first} that need no copy, or have a copy that has begun. */
    private long copied;

    /**
     * Creates a receiver of payloads into {@code staging}'s device memory. Payloads for other memory are received
     * directly. Closing the receiver closes the wire.
     */
    public StagedReceiver(FrameReceiver wire, Staging staging) {
        super(wire);
        this.wire = wire;
        this.staging = staging;
        first = wire.framesCompleted();
    }

    @Override
    public @Nullable FrameHeader poll() {
        if (window.isFull()) {
            return null;
        }
        try {
            return wire.poll();
        } catch (ConnectionException over) {
            return afterCopies(over);
        }
    }

    /**
     * Handles the close or the loss of the connection. Frames that the network has already received are still copied
     * and reported. Rethrows the failure when no frame is left; returns null until then.
     */
    private @Nullable FrameHeader afterCopies(ConnectionException over) {
        if (advance() == 0 && window.done() == copied) {
            throw over;
        }
        // The caller handles the completed frames before it polls again.
        return null;
    }

    @Override
    public void accept(@Nullable MemoryRegion region, long offset) {
        FrameHeader header = wire.poll();
        long payload = header == null ? 0 : header.payloadBytes();
        boolean stages = region == staging.device() && payload > 0 && !wire.isOnDevice();
        int index = window.slot(window.begun());
        bytes[index] = stages ? payload : 0;
        offsets[index] = offset;
        copies[index] = Staging.NO_COPY;
        wire.accept(stages ? staging.host() : region, offset);
        window.begin();
    }

    @Override
    public int progress() {
        int work = 0;
        try {
            work = wire.progress();
        } catch (ConnectionException over) {
            afterCopies(over);
        }
        return work + advance();
    }

    /** Begins copies for frames that the network has received. Completes the frames that have completed copies. */
    private int advance() {
        int work = 0;
        while (copied != window.begun() && wire.framesCompleted() - first > copied) {
            int index = window.slot(copied);
            if (bytes[index] > 0) {
                if (!staging.hasRoom()) {
                    break;
                }
                copies[index] = staging.copyIn(offsets[index], bytes[index]);
            }
            copied++;
            work++;
        }
        while (window.done() != copied && staging.isCopied(copies[window.oldest()])) {
            window.finishOldest();
            work++;
        }
        return work;
    }

    @Override
    public long framesCompleted() {
        // A frame that needs no copy may have become complete without a call of progress().
        advance();
        return window.done();
    }

    @Override
    public boolean isOnDevice() {
        return wire.isOnDevice();
    }

    @Override
    public boolean storesWholeWords(long longest) {
        return wire.storesWholeWords(longest);
    }

    /** Waits for the copies, because their sources and targets are freed next. */
    @Override
    public void close() {
        long last = Staging.NO_COPY;
        while (window.done() != copied) {
            last = Math.max(last, copies[window.finishOldest()]);
        }
        staging.awaitCopy(last);
        wire.close();
    }
}
