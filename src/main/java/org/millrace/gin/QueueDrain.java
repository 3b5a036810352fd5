package org.millrace.gin;

import org.jspecify.annotations.Nullable;

/**
 * Takes the descriptors out of one queue, one after another. Each descriptor is checked and gets a path. The path moves
 * it completely before the next descriptor begins.
 */
final class QueueDrain {

    private final GinPeer peer;
    final PeerQueue queue;
    final PathOrder order;
    /** Path of the descriptor in progress; null between two descriptors. */
    private @Nullable Path path;
    /** Number of the descriptor's bytes that have been passed on. */
    private long moved;

    QueueDrain(GinPeer peer, PeerQueue queue, PathOrder order) {
        this.peer = peer;
        this.queue = queue;
        this.order = order;
    }

    /**
     * Moves the available descriptors.
     *
     * @param maxParts maximum number of parts before the other queues have their turn
     */
    int drain(int maxParts) {
        int work = 0;
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
                break; // no room is available for the rest now
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
        path = peer.choose(descriptor, order);
        if (path == null) {
            queue.complete(queue.finish());
        }
        return path;
    }

    /** Returns whether a part of the current descriptor has not been passed on. */
    boolean isUnderWay() {
        return path != null;
    }

    /** Returns the address of the first word of the next descriptor; 0 while the current one is in progress. */
    long nextAddress() {
        return isUnderWay() ? 0 : queue.nextAddress();
    }

    GinDescriptor current() {
        return queue.current();
    }

    int context() {
        return queue.context().number();
    }

    long moved() {
        return moved;
    }

    /**
     * Returns the number of bytes of the next part.
     *
     * @param maxBytes maximum number of bytes of a part
     */
    long next(long maxBytes) {
        return Math.min(queue.current().size - moved, maxBytes);
    }

    /** Records that bytes of the current descriptor were passed on. Returns whether they were the last. */
    boolean advance(long bytes) {
        moved += bytes;
        return moved >= queue.current().size;
    }

    /** Records that the current descriptor was completely passed on. Returns the index that completes it. */
    int finish() {
        path = null;
        return queue.finish();
    }

    GinException refused(String why) {
        return new GinException(peer + ", context " + context() + ", descriptor "
                + Integer.toUnsignedString(queue.index()) + " (" + queue.current() + "): " + why);
    }
}
