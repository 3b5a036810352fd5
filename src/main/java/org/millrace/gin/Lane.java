package org.millrace.gin;

/**
 * Where the descriptors of all contexts for one peer go: over a connection, or to this rank itself. Called by the
 * agent's thread alone.
 */
abstract class Lane {

    /** Descriptors that are taken from one queue before the others have their turn. */
    private static final int MOST_AT_ONCE = 256;

    final GinCommunicator communicator;
    final int peer;
    private int first;

    Lane(GinCommunicator communicator, int peer) {
        this.communicator = communicator;
        this.peer = peer;
    }

    /** Moves what can be moved without waiting; returns how much was done. */
    abstract int progress();

    /** Passes a part of a queue's current descriptor on, or all of it; false if there is no room now. */
    abstract boolean advance(PeerQueue queue);

    /** Tells the peer how far its frames were carried out, if there are any. */
    abstract void tellSettled();

    /** Whether nothing is under way. */
    abstract boolean isDrained();

    /** Ends the lane, and abandons what is under way; with a failure the peer is to see that it was not meant. */
    abstract void close(boolean failed);

    /** Takes descriptors of all contexts, each pass beginning with another. */
    final int pull() {
        GinContext[] contexts = communicator.contexts();
        int count = contexts.length;
        int work = 0;
        for (int i = 0; i < count; i++) {
            int turn = first + i;
            GinContext context = contexts[turn < count ? turn : turn - count];
            if (context != null) {
                work += drain(context.queue(peer));
            }
        }
        first = first + 1 < count ? first + 1 : 0;
        return work;
    }

    private int drain(PeerQueue queue) {
        int work = 0;
        while (work < MOST_AT_ONCE && queue.hasCurrent()) {
            String problem = queue.moved() == 0 ? queue.current().problem(queue.context()) : null;
            if (problem != null) {
                throw refused(queue, problem);
            }
            if (!advance(queue)) {
                break;
            }
            work++;
        }
        return work;
    }

    /** Length of the part of a descriptor that comes next. */
    final long nextChunk(PeerQueue queue) {
        return Math.min(queue.current().size - queue.moved(), communicator.options().chunkBytes());
    }

    /** The window of a descriptor's handle, with room for its bytes. */
    final Window localWindow(PeerQueue queue, long handle, long offset, long bytes) {
        Window window = communicator.windows().find(handle);
        if (window == null) {
            throw refused(queue, communicator.windows().describe(handle));
        }
        if (!window.holds(offset, bytes)) {
            throw refused(queue, bytes + " bytes at " + offset + " are not within " + window);
        }
        return window;
    }

    final GinException refused(PeerQueue queue, String why) {
        return new GinException(this + ", context " + queue.context().number() + ", descriptor "
                + Integer.toUnsignedString(queue.index()) + " (" + queue.current() + "): " + why);
    }

    /** The oldest descriptor for this peer that is not complete, or null. */
    final String describeOldest() {
        for (GinContext context : communicator.contexts()) {
            String oldest = context == null ? null : context.queue(peer).describeOldest();
            if (oldest != null) {
                return oldest;
            }
        }
        return null;
    }

    /** What the peer has sent and is not carried out yet, for messages; null if there is nothing. */
    String describeArrivals() {
        return null;
    }

    /** Whether somebody wants something of this peer. */
    final boolean isWanted() {
        for (GinContext context : communicator.contexts()) {
            if (context != null && context.queue(peer).isWaiting()) {
                return true;
            }
        }
        return false;
    }

    @Override
    public String toString() {
        return "rank " + communicator.rank() + " -> rank " + peer;
    }
}
