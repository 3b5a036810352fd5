package org.millrace.gin;

/**
 * A way from a queue to a peer's memory. {@link GinPeer#choose} chooses a path for each descriptor, and the descriptor
 * stays on this path until it is complete.
 */
abstract class Path {

    final Windows windows;

    Path(LocalRank rank) {
        windows = rank.windows();
    }

    /**
     * Moves the current descriptor of a queue, part by part, as long as there is room. The next call continues at the
     * same place. Returns the number of moved parts.
     */
    final int move(QueueDrain drain) {
        int parts = 0;
        while (drain.isUnderWay() && movePart(drain)) {
            parts++;
        }
        return parts;
    }

    /**
     * Moves the next part, and calls {@link QueueDrain#finish} with the last one. Returns false if no room is available
     * now.
     */
    abstract boolean movePart(QueueDrain drain);

    /**
     * Returns the local window that a descriptor writes. It is looked up for each part, because the window may be
     * closed between two parts.
     */
    final Window target(QueueDrain drain, GinDescriptor descriptor) {
        return window(drain, descriptor.targetHandle, descriptor.targetOffset, descriptor.size);
    }

    /** Returns the local window that a descriptor reads. */
    final Window source(QueueDrain drain, GinDescriptor descriptor) {
        return window(drain, descriptor.sourceHandle, descriptor.sourceOffset, descriptor.size);
    }

    /** Returns the window of a descriptor's handle, after a check that it contains the bytes. */
    final Window window(QueueDrain drain, long handle, long offset, long bytes) {
        Window window = windows.find(handle);
        if (window == null) {
            throw drain.refused(windows.describe(handle));
        }
        if (!window.holds(offset, bytes)) {
            throw drain.refused(bytes + " bytes at " + offset + " are not within " + window);
        }
        return window;
    }
}
