package org.millrace.gin;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Carries out the descriptors of all contexts for one rank, over a connection or within this rank itself. Agent's
 * thread only.
 */
abstract class GinPeer {

    final LocalRank rank;
    final int peer;
    private GinContext[] served = {};
    private QueueWatch watch = new QueueWatch(new QueueDrain[0]);

    GinPeer(LocalRank rank, int peer) {
        this.rank = rank;
        this.peer = peer;
    }

    /** Returns this rank as a peer of itself. */
    public static GinPeer self(LocalRank rank) {
        return new Self(rank);
    }

    /**
     * Moves all data that can be moved without blocking. Returns the amount of work done.
     *
     * @param quiet whether no peer of this rank has had any work for some time
     */
    public abstract int progress(boolean quiet);

    /**
     * Returns the path of a descriptor; null if nothing has to be done at the peer. Called once for each descriptor.
     */
    abstract @Nullable Path choose(GinDescriptor descriptor, PathOrder order);

    /** Publishes to the peer the number of its frames that were carried out, if it sends frames. */
    public abstract void publishSettled();

    /** Returns whether nothing is in flight. */
    public abstract boolean isDrained();

    /**
     * Closes the connection, and abandons operations in flight. After a failure the connection is aborted, so that the
     * peer detects the failure.
     */
    public abstract void close(boolean failed);

    /** Returns the queues of all contexts for this peer. */
    final QueueWatch watch() {
        if (rank.contexts().all() != served) {
            renewDrains();
        }
        return watch;
    }

    /**
     * Updates the drains after contexts were added or removed. The other contexts keep their drains and the operations
     * in flight in them.
     */
    private void renewDrains() {
        served = rank.contexts().all();
        List<QueueDrain> renewed = new ArrayList<>();
        for (GinContext context : served) {
            if (context != null) {
                renewed.add(drainOf(context.queue(peer)));
            }
        }
        watch = new QueueWatch(renewed.toArray(QueueDrain[]::new));
    }

    private QueueDrain drainOf(PeerQueue queue) {
        for (QueueDrain drain : watch.drains()) {
            if (drain.queue == queue) {
                return drain;
            }
        }
        return new QueueDrain(this, queue, new PathOrder(queue.context(), peer));
    }

    /**
     * Describes for messages the oldest descriptor for this peer that is not complete. Returns null if all are
     * complete.
     */
    public final @Nullable String describeOldest() {
        for (GinContext context : rank.contexts().all()) {
            String oldest = context == null ? null : context.queue(peer).describeOldest();
            if (oldest != null) {
                return oldest;
            }
        }
        return null;
    }

    /**
     * Describes for messages the frames that the peer has sent and that are not carried out yet. Returns null if all
     * are carried out.
     */
    public @Nullable String describeInbound() {
        return null;
    }

    /** Returns whether a descriptor waits for this peer. */
    final boolean isWanted() {
        for (GinContext context : rank.contexts().all()) {
            if (context != null && context.queue(peer).isWaiting()) {
                return true;
            }
        }
        return false;
    }

    @Override
    public final String toString() {
        return "rank " + rank.rank() + " -> rank " + peer;
    }

    private static final class Self extends GinPeer {
        private final SelfPath path;

        Self(LocalRank rank) {
            super(rank, rank.rank());
            path = new SelfPath(rank);
        }

        @Override
        public int progress(boolean quiet) {
            return watch().pull(quiet) + path.settle();
        }

        @Override
        Path choose(GinDescriptor descriptor, PathOrder order) {
            return path;
        }

        @Override
        public void publishSettled() {
            // a rank sends no frames to itself
        }

        @Override
        public boolean isDrained() {
            return path.isEmpty() && !isWanted();
        }

        @Override
        public void close(boolean failed) {
            path.abandon();
        }
    }
}
