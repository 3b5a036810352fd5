package org.millrace.gin;

/**
 * A way from a queue to a peer's memory. {@link GinPeer#choose} picks one for each descriptor, and the descriptor stays
 * on it to its end.
 */
abstract class Path {

    final Windows windows;

    Path(LocalRank rank) {
        windows = rank.windows();
    }

    /**
     * Moves the current descriptor of a queue, part by part, as far as there is room; goes on from there the next time.
     * Returns how many parts there were.
     */
    final int move(QueueDrain drain) {
        int parts = 0;
        while (drain.isUnderWay() && movePart(drain)) {
            parts++;
        }
        return parts;
    }

    /** Moves the next part; calls {@link QueueDrain#finish} with the last one. False if there is no room now. */
    abstract boolean movePart(QueueDrain drain);

    /** The window that a descriptor writes here. Looked up for each part: it may be closed between two. */
    final Window target(QueueDrain drain, GinDescriptor descriptor) {
        return window(drain, descriptor.targetHandle, descriptor.targetOffset, descriptor.size);
    }

    /** The window that a descriptor reads here. */
    final Window source(QueueDrain drain, GinDescriptor descriptor) {
        return window(drain, descriptor.sourceHandle, descriptor.sourceOffset, descriptor.size);
    }

    /** The window of a descriptor's handle, with room for its bytes. */
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
