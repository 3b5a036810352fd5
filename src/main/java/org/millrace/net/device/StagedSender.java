package org.millrace.net.device;

import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.Waiting;
import org.millrace.net.DeviceRegion;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;

/**
 * Sends payloads that lie in a device's memory: as they are where the network takes them so, or else by way of the
 * host's memory, with several copies under way. One thread.
 */
public final class StagedSender implements FrameSender {

    /** A device's copies end by themselves, within milliseconds. */
    private static final Duration PATIENCE = Duration.ofSeconds(10);
    private static final int LIMIT = 16;
    /** In place of a copy's number: the payload needs none. */
    private static final long NO_COPY = -1;

    private final FrameSender wire;
    private final Staging staging;
    /** Frames that wait for their copies, or behind such. */
    private final FrameHeader[] headers = new FrameHeader[LIMIT];
    private final @Nullable MemoryRegion[] regions = new MemoryRegion[LIMIT];
    private final long[] offsets = new long[LIMIT];
    private final long[] copies = new long[LIMIT];
    private long added;
    private long sent;

    /**
     * A sender of payloads in one device's memory, and in others that are the network's.
     *
     * @param wire closed with this
     */
    public StagedSender(FrameSender wire, Staging staging) {
        this.wire = wire;
        this.staging = staging;
        for (int i = 0; i < LIMIT; i++) {
            headers[i] = new FrameHeader();
        }
    }

    @Override
    public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        boolean stages = region == staging.device() && header.payloadBytes() > 0 && !wire.sendsFrom(staging.device());
        if (!stages && added == sent) {
            return wire.offer(header, region, offset);
        }
        if (added - sent == LIMIT) {
            return false;
        }
        int index = (int) (added++ % LIMIT);
        headers[index].set(header);
        regions[index] = stages ? staging.host() : region;
        offsets[index] = offset;
        copies[index] = stages ? staging.copyOut(offset, header.payloadBytes()) : NO_COPY;
        return true;
    }

    @Override
    public int progress() {
        int work = 0;
        while (added != sent) {
            int index = (int) (sent % LIMIT);
            if (copies[index] != NO_COPY && !staging.device().copies().isDone(copies[index])
                    || !wire.offer(headers[index], regions[index], offsets[index])) {
                break;
            }
            sent++;
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
    public String peer() {
        return wire.peer();
    }

    @Override
    public void blame(String lostPeer) {
        wire.blame(lostPeer);
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

    /** The memory at both ends of a copy is freed next. */
    private void awaitCopies() {
        while (added != sent) {
            long copy = copies[(int) (sent++ % LIMIT)];
            if (copy != NO_COPY) {
                Waiting.until(() -> staging.device().copies().isDone(copy), PATIENCE);
            }
        }
    }

    @Override
    public String toString() {
        return wire.toString();
    }
}
