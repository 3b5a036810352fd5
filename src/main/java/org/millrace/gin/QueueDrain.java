package org.millrace.gin;

import org.jspecify.annotations.Nullable;

/**
 * Takes the descriptors out of one queue, one after another: each is checked, gets its path, and is moved by that to
 * its end before the next one begins.
 */
final class QueueDrain {

    private final GinPeer peer;
    final PeerQueue queue;
    final PathOrder order;
    /** Of the descriptor that is under way; null between two. */
    private @Nullable Path path;
    /** How many of its bytes have been passed on. */
    private long moved;

    QueueDrain(GinPeer peer, PeerQueue queue, PathOrder order) {
        this.peer = peer;
        this.queue = queue;
        this.order = order;
    }

    /**
     * Moves what is there.
     *
     * @param most parts before the others have their turn
     */
    int drain(int most) {
        int work = 0;
        while (work < most && queue.hasCurrent()) {
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
                break; // there is no room for the rest now
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

    /** Whether some of the current descriptor has not been passed on. */
    boolean isUnderWay() {
        return path != null;
    }

    /** The address of the word that the next descriptor begins with; 0 as long as the current one is under way. */
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

    /** How many bytes go with the next part, if it may have so many. */
    long next(long most) {
        return Math.min(queue.current().size - moved, most);
    }

    /** Bytes of the current descriptor were passed on; returns whether they were the last. */
    boolean advance(long bytes) {
        moved += bytes;
        return moved >= queue.current().size;
    }

    /** The current descriptor was passed on whole. Returns its index, by which it is completed. */
    int finish() {
        path = null;
        return queue.finish();
    }

    GinException refused(String why) {
        return new GinException(peer + ", context " + context() + ", descriptor "
                + Integer.toUnsignedString(queue.index()) + " (" + queue.current() + "): " + why);
    }
}
