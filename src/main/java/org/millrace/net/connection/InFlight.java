package org.millrace.net.connection;

/**
 * What is under way on a connection, such as frames or requests, in the order in which it began. Each has a number,
 * counted from 0 for the life of the connection, and a slot until it is done, by which the user of the window keeps
 * arrays of its own. One thread.
 */
public final class InFlight {

    private final int limit;
    private final int mask;
    private long begun;
    private long done;

    /** @param limit of what is under way at a time, 1 or more */
    public InFlight(int limit) {
        this.limit = limit;
        mask = Integer.highestOneBit(limit * 2 - 1) - 1;
    }

    /** {@return the length of an array with an element for each slot} */
    public int slots() {
        return mask + 1;
    }

    public boolean isEmpty() {
        return begun == done;
    }

    public boolean isFull() {
        return begun - done == limit;
    }

    /** {@return how many were begun so far} */
    public long begun() {
        return begun;
    }

    /** {@return how many were done so far} */
    public long done() {
        return done;
    }

    public int slot(long number) {
        return (int) number & mask;
    }

    /** Begins one, of which there must not be too many; returns its slot. */
    public int begin() {
        return slot(begun++);
    }

    /** {@return the slot of the oldest, or of the next one if there is none} */
    public int oldest() {
        return slot(done);
    }

    /** The oldest is done; returns its slot. */
    public int finishOldest() {
        return slot(done++);
    }
}
