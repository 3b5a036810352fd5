package org.millrace.gin;

/**
 * A device's free staging buffers, and the uses of the others. An outbound frame keeps its buffer until the peer has a
 * buffer for the arriving bytes. If outbound frames could take all buffers, two ranks would wait for each other
 * forever. An inbound frame keeps its buffer until everything before it was written and added. An add that waited for
 * such a buffer would wait forever, too. Each of the three uses therefore has buffers that the others cannot take. The
 * remaining buffers can be taken for any use. Agent's thread only.
 *
 * <p>
 * A communicator that ends with open transfers leaves its buffers abandoned. Its connections are closed, so no network
 * accesses them. However, copies that were begun cannot be canceled. Abandoned buffers are reused when these copies are
 * complete. That is checked only when a buffer is needed and none is free.
 */
public final class StagingBuffers {

    /** The copies between the buffers and their device. */
    public interface Copies {

        /** Marks all copies that were begun so far. Replaces the previous mark. */
        void mark();

        /** Returns whether all copies that were begun before the last mark are complete. Does not block. */
        boolean arePastMark();
    }

    /** Minimum number of buffers: one for each use. */
    public static final int LEAST = 3;

    /** Maximum number of adds in flight. One of the buffers is reserved for adds. */
    public static final int MOST_TO_ADD = 16;
    private static final int RESERVED_FOR_ADDS = 1;
    /**
     * One buffer in this many, and at least one, is reserved for outbound frames. The same number is reserved for
     * inbound frames.
     */
    private static final int SHARE = 4;

    private static final int TO_SEND = 0;
    private static final int TO_RECEIVE = 1;
    private static final int TO_ADD = 2;

    private final int[] free;
    private int freeCount;
    private final byte[] use;
    /** Number of taken buffers by use, and maximum number by use. */
    private final int[] taken = new int[LEAST];
    private final int[] limit = new int[LEAST];
    private final Copies copies;
    private final int[] abandoned;
    private int abandonedCount;

    /**
     * Creates buffers that are all free.
     *
     * @throws IllegalArgumentException if there are fewer than {@value #LEAST}
     */
    public StagingBuffers(int buffers, Copies copies) {
        if (buffers < LEAST) {
            throw new IllegalArgumentException(buffers + " staging buffers: sends, receives and adds need one each");
        }
        free = new int[buffers];
        for (int i = 0; i < buffers; i++) {
            free[i] = i;
        }
        freeCount = buffers;
        this.copies = copies;
        abandoned = new int[buffers];
        use = new byte[buffers];
        int forBoth = buffers - RESERVED_FOR_ADDS;
        int reserved = Math.max(1, forBoth / SHARE);
        limit[TO_SEND] = forBoth - reserved;
        limit[TO_RECEIVE] = forBoth - reserved;
        limit[TO_ADD] = Math.clamp(buffers / SHARE, 1, MOST_TO_ADD);
    }

    /** Returns a buffer for outbound bytes, or -1 if none is available for them now. */
    public int takeToSend() {
        return take(TO_SEND);
    }

    /** Returns a buffer for inbound bytes, or -1 if none is available for them now. */
    public int takeToReceive() {
        return take(TO_RECEIVE);
    }

    /** Returns a buffer for the old value of an add, or -1 if too many adds are in flight. */
    public int takeToAdd() {
        return take(TO_ADD);
    }

    private int take(int purpose) {
        // the buffer that no other use may take is free for adds
        int others = purpose == TO_ADD ? 0 : Math.max(0, RESERVED_FOR_ADDS - taken[TO_ADD]);
        if (taken[purpose] == limit[purpose] || freeCount == others) {
            return takeBack() ? take(purpose) : -1;
        }
        taken[purpose]++;
        int buffer = free[--freeCount];
        use[buffer] = (byte) purpose;
        return buffer;
    }

    public void give(int buffer) {
        taken[use[buffer]]--;
        free[freeCount++] = buffer;
    }

    /**
     * Frees a buffer that networks have stopped accessing, as soon as the copies that were begun so far are complete.
     */
    public void abandon(int buffer) {
        copies.mark(); // one mark for all abandoned buffers, because waiting for the last copy is sufficient
        abandoned[abandonedCount++] = buffer;
    }

    private boolean takeBack() {
        if (abandonedCount == 0 || !copies.arePastMark()) {
            return false;
        }
        while (abandonedCount > 0) {
            give(abandoned[--abandonedCount]);
        }
        return true;
    }
}
