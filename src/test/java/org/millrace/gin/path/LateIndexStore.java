package org.millrace.gin.path;

import java.util.ArrayDeque;
import java.util.Deque;
import org.millrace.abi.GinIndices;
import org.millrace.gin.queue.GinContext;

/** Stores indices in memory of its own, not before it is told to, and not many at a time. */
final class LateIndexStore implements GinContext.IndexStore {

    private static final int MOST = 1;

    private record Begun(int peer, int index) {
    }

    private final GinIndices there;
    private final Deque<Begun> begun = new ArrayDeque<>();
    int refusals;

    LateIndexStore(GinIndices there) {
        this.there = there;
    }

    @Override
    public boolean begin(int peer, int index) {
        if (begun.size() == MOST) {
            refusals++;
            return false;
        }
        begun.add(new Begun(peer, index));
        return true;
    }

    @Override
    public boolean isSettled() {
        return begun.isEmpty();
    }

    /** Ends the store that was begun first. */
    void finishOne() {
        Begun first = begun.poll();
        if (first != null) {
            there.release(first.peer, first.index);
        }
    }
}
