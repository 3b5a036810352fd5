package org.millrace.gin;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One rank of the communicator, as a destination of descriptors. Carries out the descriptors of all contexts for this
 * destination: over a connection, or by copies if the destination is this rank itself. Agent's thread only.
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

    /** Returns the object for this rank as a destination of its own descriptors. */
    public static GinPeer self(LocalRank rank) {
        return new Self(rank);
    }

    /**
     * Makes as much progress as is possible without blocking, in both directions. Returns the amount of work done.
     *
     * @param quiet true if the last passes found no work, neither for this peer nor for another destination
     */
    public abstract int progress(boolean quiet);

    /**
     * Returns the GIN path of a descriptor; null if the descriptor needs no operation at the peer. Called once for each
     * descriptor.
     *
     * @param drain queue of the descriptor; the descriptor is the current descriptor of this queue
     */
    abstract @Nullable Path choose(QueueDrain drain);

    /** Publishes to the peer how many of its frames are settled. Does nothing if the peer sends no frames. */
    public abstract void publishSettled();

    /** Returns false while a descriptor or a frame to or from this peer waits or is in flight, otherwise true. */
    public abstract boolean isDrained();

    /**
     * Closes the connection and abandons the operations in flight.
     *
     * @param failed whether the communicator has failed; the connection is then aborted, so that the peer detects the
     *               failure
     */
    public abstract void close(boolean failed);

    /** Returns the watch over this peer's queues in all contexts. Renews the watch if the contexts have changed. */
    final QueueWatch watch() {
        if (rank.contexts().all() != served) {
            renewDrains();
        }
        return watch;
    }

    /**
     * Creates a watch for the current contexts. A context of the previous watch keeps its drain, because operations may
     * be in flight in it.
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
     * Returns a description of the oldest incomplete descriptor for this peer, for messages; null if all are complete.
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
     * Returns a description of the peer's frames that have arrived and are not settled, for messages; null if all are
     * settled.
     */
    public @Nullable String describeInbound() {
        return null;
    }

    /** Returns whether a queue still contains a descriptor for this peer that is not passed completely to a path. */
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
        Path choose(QueueDrain drain) {
            return path;
        }

        @Override
        public void publishSettled() {
            // Does nothing, because a rank sends no frames to itself.
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
