package org.millrace.gin;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Where the descriptors of all contexts for one rank go: over a connection, or to this rank itself. On the agent's
 * thread.
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

    /** This rank, as a peer of its own. */
    public static GinPeer self(LocalRank rank) {
        return new Self(rank);
    }

    /**
     * Moves what can be moved without waiting; returns how much was done.
     *
     * @param quiet whether no peer of this rank has had anything to do for some time
     */
    public abstract int progress(boolean quiet);

    /** The path of a descriptor; null if there is nothing to do for it at the peer. Called once for each. */
    abstract @Nullable Path choose(GinDescriptor descriptor, PathOrder order);

    /** Tells the peer how far its frames were carried out, if there are any. */
    public abstract void tellSettled();

    /** Whether nothing is under way. */
    public abstract boolean isDrained();

    /** Ends it, and abandons what is under way; with a failure the peer is to see that it was not meant. */
    public abstract void close(boolean failed);

    /** The queues of all contexts for this peer. */
    final QueueWatch watch() {
        if (rank.contexts().all() != served) {
            renewDrains();
        }
        return watch;
    }

    /** Contexts have come or gone: those that stay keep their drains, and what is under way in them. */
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

    /** The oldest descriptor for this peer that is not complete, for messages; null if there is none. */
    public final @Nullable String describeOldest() {
        for (GinContext context : rank.contexts().all()) {
            String oldest = context == null ? null : context.queue(peer).describeOldest();
            if (oldest != null) {
                return oldest;
            }
        }
        return null;
    }

    /** What the peer has sent and is not carried out yet, for messages; null if there is nothing. */
    public @Nullable String describeInbound() {
        return null;
    }

    /** Whether a descriptor waits for this peer. */
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
        public void tellSettled() {
            // to itself a rank sends no frames
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
