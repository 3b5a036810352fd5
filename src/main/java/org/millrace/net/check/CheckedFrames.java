package org.millrace.net.check;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver.Pages;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.FrameQueue;

/** Frames with payloads that are compared with the checksums in their headers, oldest first. Used by one thread. */
public final class CheckedFrames {

    private final FrameCheck check;
    private final boolean inSlots;
    private final String changed;
    private final PayloadSum sums = new PayloadSum();
    /** If a frame has pages, its offset is the index of its first page. */
    private final FrameQueue frames;
    /** Pages of each frame, by slot of {@link #frames}; null if the payload is in one piece. */
    private final @Nullable Pages[] pages;
    /** Number of the network's completed frames that are removed from {@link #frames}. */
    private long removed;

    /**
     * @param inSlots whether the payloads lie in slots, where they were checked on arrival
     * @param changed description of a change and of its likely causes
     * @param removed number of frames that the network completed before this object was created
     */
    public CheckedFrames(FrameCheck check, boolean inSlots, String changed, long removed) {
        this.check = check;
        this.inSlots = inSlots;
        this.changed = changed;
        this.removed = removed;
        frames = new FrameQueue(check.frames());
        pages = new Pages[frames.slots()];
    }

    /** Adds a frame. The region is null for pages, and for a frame without a payload. */
    public void add(FrameHeader header, @Nullable Pages scattered, @Nullable MemoryRegion region, long offset) {
        pages[frames.add(header, region, offset)] = scattered;
    }

    public boolean isEmpty() {
        return frames.isEmpty();
    }

    boolean isFull() {
        return frames.isFull();
    }

    public FrameHeader oldest() {
        return frames.header();
    }

    int sum(@Nullable MemoryRegion region, long offset, long bytes) {
        return sums.of(Objects.requireNonNull(region), offset, bytes);
    }

    /**
     * Checks and removes the frames that the network has completed. Returns {@code completed}, which is the total
     * number of completed frames.
     */
    long verifyCompleted(long completed) {
        while (removed != completed && !frames.isEmpty()) {
            removed++;
            verifyOldest();
        }
        return completed;
    }

    /** Checks and removes the oldest frame. */
    public void verifyOldest() {
        FrameHeader header = frames.header();
        MemoryRegion region = frames.region();
        Pages scattered = pages[frames.oldest()];
        long offset = frames.offset();
        frames.removeOldest();
        if (check.isSummed(header)) {
            long bytes = header.payloadBytes();
            check.verify(header,
                    scattered != null ? sums.of(scattered, (int) offset, bytes) : sum(region, offset, bytes), inSlots,
                    changed);
        }
    }

    /** Forgets all frames, because the owner may now free the memory of their payloads. */
    void forget() {
        while (!frames.isEmpty()) {
            frames.removeOldest();
        }
    }
}
