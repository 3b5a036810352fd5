package org.millrace.gin;

/** The gets that one peer has still to answer, oldest first: the answers come in that order. */
final class Gets {

    /** How many a peer is asked at once, and so how many it must be able to remember. */
    static final int MOST = 16;

    /** A get under way. */
    static final class Get {
        PeerQueue queue;
        int index;
        Window target;
        long offset;
        long missing;
    }

    private final Get[] ring = new Get[MOST];
    private long asked;
    private long answered;

    Gets() {
        for (int i = 0; i < MOST; i++) {
            ring[i] = new Get();
        }
    }

    boolean isFull() {
        return asked - answered == MOST;
    }

    boolean isEmpty() {
        return asked == answered;
    }

    /** Notes a get; the peer counts them too. */
    void add(PeerQueue queue, int index, Window target, long offset, long bytes) {
        Get get = ring[(int) asked++ & MOST - 1];
        get.queue = queue;
        get.index = index;
        get.target = target;
        get.offset = offset;
        get.missing = bytes;
        target.hold();
    }

    /** The get that is answered next, or null. */
    Get oldest() {
        return isEmpty() ? null : ring[(int) answered & MOST - 1];
    }

    long oldestNumber() {
        return answered;
    }

    void oldestAnswered() {
        ring[(int) answered++ & MOST - 1].target.letGo();
    }
}
