package org.millrace.plugin.takeover;

import org.jspecify.annotations.Nullable;
import org.millrace.net.DeviceRegion;
import org.millrace.net.FrameEnd;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.FrameQueue;

/**
 * Sends payloads that lie in a device's memory. The payloads are sent directly if the network (the wire) can read this
 * memory. Otherwise they pass through host memory, with several copies in flight. Used by one thread.
 */
final class StagedSender extends FrameEnd.Carried implements FrameSender {

    private static final int LIMIT = 16;
    private final FrameSender wire;
    private final Staging staging;
    /** Frames that wait for their own copies or for earlier frames. */
    private final FrameQueue waiting = new FrameQueue(LIMIT);
    /**
     * Number of the copy of a frame's payload, indexed by the frame's slot in {@link #waiting}; {@link Staging#NO_COPY}
     * if the payload needs no copy.
     */
    private final long[] copies = new long[LIMIT];

    /**
     * Creates a sender of payloads in {@code staging}'s device memory. Payloads in other memory are sent directly.
     * Closing the sender closes the wire.
     */
    public StagedSender(FrameSender wire, Staging staging) {
        super(wire);
        this.wire = wire;
        this.staging = staging;
    }

    @Override
    public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        boolean stages = region == staging.device() && header.payloadBytes() > 0 && !wire.sendsFrom(staging.device());
        if (!stages && waiting.isEmpty()) {
            return wire.offer(header, region, offset);
        }
        if (waiting.isFull() || stages && !staging.hasRoom()) {
            return false;
        }
        copies[waiting.add(header, stages ? staging.host() : region, offset)] =
                stages ? staging.copyOut(offset, header.payloadBytes()) : Staging.NO_COPY;
        return true;
    }

    @Override
    public int progress() {
        int work = 0;
        while (!waiting.isEmpty() && staging.isCopied(copies[waiting.oldest()])
                && wire.offer(waiting.header(), waiting.region(), waiting.offset())) {
            waiting.removeOldest();
            work++;
        }
        return work + wire.progress();
    }

    @Override
    public long framesCompleted() {
        return wire.framesCompleted();
    }

    @Override
    public boolean sendsFrom(DeviceRegion memory) {
        return memory == staging.device() || wire.sendsFrom(memory);
    }

    @Override
    public void settle() {
        wire.settle();
    }

    @Override
    public void close() {
        awaitCopies();
        wire.close();
    }

    @Override
    public void abort() {
        awaitCopies();
        wire.abort();
    }

    /** Waits for the copies, because their sources and targets are freed next. */
    private void awaitCopies() {
        long last = Staging.NO_COPY;
        for (; !waiting.isEmpty(); waiting.removeOldest()) {
            last = Math.max(last, copies[waiting.oldest()]);
        }
        staging.awaitCopy(last);
    }
}
