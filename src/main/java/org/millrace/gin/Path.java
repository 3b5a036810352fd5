package org.millrace.gin;

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
     * Moves the current descriptor of a queue, part by part, until the descriptor is finished or no part can be moved
     * now. In the second case the next call continues with the next part. Returns the number of moved parts.
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

    /**
     * Returns this rank's object of the window to which a descriptor writes. Called for each part, because the window
     * may be closed between two parts.
     */
    final Window target(QueueDrain drain, GinDescriptor descriptor) {
        return window(drain, descriptor.targetHandle, descriptor.targetOffset, descriptor.size);
    }

    /** Returns this rank's object of the window from which a descriptor reads. */
    final Window source(QueueDrain drain, GinDescriptor descriptor) {
        return window(drain, descriptor.sourceHandle, descriptor.sourceOffset, descriptor.size);
    }

    /** Returns this rank's window with a handle, after a check that the window contains the range of bytes. */
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
