package org.millrace.net.connection;

/**
 * Numbers the items in flight on a connection, such as frames or requests, in the order in which they begin. Each item
 * has a number, counted from 0 over the life of the connection. While an item is in flight, it also has a slot. The
 * caller uses the slot as an index into its own arrays. Used by one thread.
 */
public final class InFlight {

    private final int limit;
    private final int mask;
    private long begun;
    private long done;

    /** @param limit maximum number of items in flight, 1 or more */
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

    /** {@return number of items begun so far} */
    public long begun() {
        return begun;
    }

    /** {@return number of items done so far} */
    public long done() {
        return done;
    }

    public int slot(long number) {
        return (int) number & mask;
    }

    /** Begins an item. Fewer items than the maximum number must be in flight. Returns its slot. */
    public int begin() {
        return slot(begun++);
    }

    /** {@return the slot of the oldest item; the slot of the next item if no item is in flight} */
    public int oldest() {
        return slot(done);
    }

    /** Marks the oldest item as done. Returns its slot. */
    public int finishOldest() {
        return slot(done++);
    }
}
