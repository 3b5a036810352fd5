package org.millrace.gin;

import org.jspecify.annotations.Nullable;

/**
 * Takes the descriptors from one queue, one after another. Checks each descriptor and selects its path. The path moves
 * all parts of the descriptor before the next descriptor is taken.
 */
final class QueueDrain {

    private final GinPeer peer;
    final PeerQueue queue;
    final PathOrder order;
    /** Path of the current descriptor; null if no descriptor is current. */
    private @Nullable Path path;
    /**
     * This rank's objects for the windows that the current descriptor names; null for a window that does not exist.
     * Each call of {@link #drain} looks the windows up again, because a window may be closed between two passes.
     */
    private @Nullable Window source;
    private @Nullable Window target;
    /** Number of the current descriptor's bytes that the path has moved. */
    private long moved;

    QueueDrain(GinPeer peer, PeerQueue queue, PathOrder order) {
        this.peer = peer;
        this.queue = queue;
        this.order = order;
    }

    /**
     * Moves the descriptors of the queue. Returns the amount of work done.
     *
     * @param maxParts number of parts after which no further descriptor begins, so that other queues are served
     */
    int drain(int maxParts) {
        int work = 0;
        if (isUnderWay()) {
            findWindows();
        }
        while (work < maxParts && queue.hasCurrent()) {
            Path chosen = path;
            if (chosen == null) {
                chosen = begin();
                if (chosen == null) {
                    work++;
                    continue;
                }
            }
            work += chosen.move(this);
            if (isUnderWay()) {
                // The descriptor has parts that the path cannot move now. A later call continues.
                break;
            }
        }
        return work;
    }

    private @Nullable Path begin() {
        GinDescriptor descriptor = queue.current();
        String problem = descriptor.problem(queue.context());
        if (problem != null) {
            throw refused(problem);
        }
        moved = 0;
        findWindows();
        path = peer.choose(this);
        if (path == null) {
            queue.complete(queue.finish());
        }
        return path;
    }

    private void findWindows() {
        GinDescriptor descriptor = queue.current();
        Windows windows = peer.rank.windows();
        source = windows.find(descriptor.sourceHandle);
        target = descriptor.targetHandle == descriptor.sourceHandle ? source : windows.find(descriptor.targetHandle);
    }

    /** Returns whether the current descriptor has a part that the path has not moved. */
    boolean isUnderWay() {
        return path != null;
    }

    /** Returns the address of the first word of the next descriptor; 0 while the current descriptor is in progress. */
    long nextAddress() {
        return isUnderWay() ? 0 : queue.nextAddress();
    }

    GinDescriptor current() {
        return queue.current();
    }

    @Nullable
    Window source() {
        return source;
    }

    @Nullable
    Window target() {
        return target;
    }

    int context() {
        return queue.context().number();
    }

    long moved() {
        return moved;
    }

    /**
     * Returns the number of bytes of the current descriptor's next part.
     *
     * @param maxBytes maximum number of bytes of a part
     */
    long next(long maxBytes) {
        return Math.min(queue.current().size - moved, maxBytes);
    }

    /** Records that the path has moved bytes of the current descriptor. Returns whether they were the last bytes. */
    boolean advance(long bytes) {
        moved += bytes;
        return moved >= queue.current().size;
    }

    /**
     * Records that the path has moved all parts of the current descriptor. Returns the descriptor's index. The path
     * later completes the descriptor by this index.
     */
    int finish() {
        path = null;
        return queue.finish();
    }

    GinException refused(String why) {
        return new GinException(peer + ", context " + context() + ", descriptor "
                + Integer.toUnsignedString(queue.index()) + " (" + queue.current() + "): " + why);
    }
}
