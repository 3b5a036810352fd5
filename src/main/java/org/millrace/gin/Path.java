package org.millrace.gin;

import org.jspecify.annotations.Nullable;

/**
 * A way to move bytes and signals from a queue's descriptors to a peer's memory. {@link GinPeer#choose} chooses a path
 * for each descriptor. The descriptor stays on this path until it is complete.
 */
abstract class Path {

    final Windows windows;

    Path(LocalRank rank) {
        windows = rank.windows();
    }

    /**
     * Moves parts of a queue's current descriptor, until the descriptor is finished or the next part cannot be moved
     * now. The next call continues with the part that could not be moved. Returns the number of moved parts.
     */
    final int move(QueueDrain drain) {
        int parts = 0;
        while (drain.isUnderWay() && movePart(drain)) {
            parts++;
        }
        return parts;
    }

    /**
     * Moves the next part of the current descriptor: the bytes of one frame or of one copy. Calls
     * {@link QueueDrain#finish} after the last part. Returns false if the part cannot be moved now.
     */
    abstract boolean movePart(QueueDrain drain);

    /** Returns the window to which a descriptor writes. Checks that the window contains the descriptor's bytes. */
    final Window target(QueueDrain drain, GinDescriptor descriptor) {
        return window(drain, drain.target(), descriptor.targetHandle, descriptor.targetOffset, descriptor.size);
    }

    /** Returns the window from which a descriptor reads. Checks that the window contains the descriptor's bytes. */
    final Window source(QueueDrain drain, GinDescriptor descriptor) {
        return source(drain, descriptor, descriptor.size);
    }

    /**
     * Returns the window of a descriptor's source. Checks that the window contains {@code bytes} bytes from the
     * source's offset on.
     */
    final Window source(QueueDrain drain, GinDescriptor descriptor, long bytes) {
        return window(drain, drain.source(), descriptor.sourceHandle, descriptor.sourceOffset, bytes);
    }

    private Window window(QueueDrain drain, @Nullable Window window, long handle, long offset, long bytes) {
        if (window == null) {
            throw drain.refused(windows.describe(handle));
        }
        if (!window.holds(offset, bytes)) {
            throw drain.refused(bytes + " bytes at " + offset + " are not within " + window);
        }
        return window;
    }
}
