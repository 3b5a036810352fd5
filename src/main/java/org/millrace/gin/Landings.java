package org.millrace.gin;

/**
 * What is landing from one peer, oldest first: frames are added, their payloads arrive in that order, and they are
 * settled in that order.
 */
final class Landings {

    private final Landing[] ring;
    private long added;
    private long arrived;
    private long settled;

    Landings(int depth) {
        ring = new Landing[depth];
        for (int i = 0; i < depth; i++) {
            ring[i] = new Landing();
        }
    }

    private Landing at(long number) {
        return ring[(int) number & ring.length - 1];
    }

    boolean isFull() {
        return added - settled == ring.length;
    }

    boolean isEmpty() {
        return added == settled;
    }

    /** The landing that {@link #add} will add, cleared. */
    Landing next() {
        Landing next = at(added);
        next.clear();
        return next;
    }

    void add() {
        added++;
    }

    /** How many were added. */
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
        while (settled < arrived && at(settled).settle()) {
            settled++;
            work++;
        }
        return work;
    }

    /** The connection is closed. Whoever failed may have opened a landing and not added it, so all are looked at. */
    void abandon() {
        for (Landing landing : ring) {
            landing.abandon();
        }
    }
}
