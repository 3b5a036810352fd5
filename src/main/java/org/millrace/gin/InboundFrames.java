package org.millrace.gin;

/**
 * The frames of one peer whose bytes are on their way to a window here, oldest first: frames are added, their payloads
 * arrive in that order, and they are settled in that order.
 */
final class InboundFrames {

    private final InboundFrame[] ring;
    private long added;
    private long arrived;
    private long settled;
    /** The last for which all that arrived was begun. */
    private long asked;

    InboundFrames(int depth) {
        ring = new InboundFrame[depth];
        for (int i = 0; i < depth; i++) {
            ring[i] = new InboundFrame();
        }
    }

    private InboundFrame at(long number) {
        return ring[(int) number & ring.length - 1];
    }

    boolean isFull() {
        return added - settled == ring.length;
    }

    boolean isEmpty() {
        return added == settled;
    }

    /** The frame that {@link #add} will add, cleared. */
    InboundFrame next() {
        InboundFrame next = at(added);
        next.clear();
        return next;
    }

    void add() {
        added++;
    }

    long added() {
        return added;
    }

    /** The payloads of this many frames have arrived in all. */
    int arrive(long frames) {
        int work = 0;
        while (arrived < added && frames - arrived > 0) {
            at(arrived++).arrive();
            work++;
        }
        return work;
    }

    /** How many were added and have nothing left to do. */
    long settled() {
        return settled;
    }

    /** All that were added are there: nothing had to travel. */
    void allArrived() {
        arrived = added;
    }

    int settle() {
        int work = 0;
        if (asked != arrived) { // copies are begun many at once, and now is the time
            asked = arrived;
            at(arrived - 1).begin();
        }
        while (settled < arrived && at(settled).settle()) {
            settled++;
            work++;
        }
        return settled < arrived && at(settled).isAdding() ? work + addAhead() : work;
    }

    /** Begins the adds behind the oldest, which is one: each takes two ways to the memory. */
    private int addAhead() {
        int begun = 0;
        long next = settled + 1;
        while (next < arrived && at(next).isAdding()) {
            next++;
        }
        while (next < arrived && at(next).waitsToAdd() && at(next).beginAdd()) {
            begun++;
            next++;
        }
        if (begun > 0) {
            at(next - 1).begin();
        }
        return begun;
    }

    /** The connection is closed. A failure may have left a frame that was begun and not added, so all are looked at. */
    void abandon() {
        for (InboundFrame frame : ring) {
            frame.abandon();
        }
    }
}
