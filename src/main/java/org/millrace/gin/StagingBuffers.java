package org.millrace.gin;

/**
 * Allocation of a device's staging buffers. A buffer is free, or used for one of three purposes: to send bytes, to
 * receive bytes, or for the old value of an add. An outbound frame keeps its buffer until the peer has a buffer for the
 * frame's bytes. If outbound frames could use all buffers, two ranks would wait for each other forever. An inbound
 * frame keeps its buffer until all earlier writes and adds are complete. If inbound frames could use all buffers, an
 * earlier add would wait forever for a buffer. Some buffers are therefore reserved for each purpose. All other buffers
 * are available for every purpose. Agent's thread only.
 *
 * <p>
 * A communicator that ends with open transfers abandons their buffers. Its connections are closed, so no network
 * accesses the buffers. However, copies from or to them may be in progress and cannot be canceled. Abandoned buffers
 * become free when these copies are complete. The completion is checked only if a buffer is needed and none is
 * available.
 */
public final class StagingBuffers {

    /** Progress of the copies between the buffers and their device. */
    public interface Copies {

        /**
         * Remembers the newest copy that has begun, as the mark for {@link #arePastMark}. Replaces the previous mark.
         */
        void mark();

        /**
         * Returns whether all copies that had begun at the latest call of {@link #mark} are complete. Does not block.
         */
        boolean arePastMark();
    }

    /** Number of purposes, and minimum number of buffers: one for each purpose. */
    public static final int LEAST = 3;

    /** Maximum number of adds in flight. Only one buffer is reserved for adds. */
    public static final int MAX_ADDED = 16;
    private static final int RESERVED_FOR_ADDS = 1;
    /**
     * Divisor for numbers of buffers. With n buffers, (n - 1) / {@value} of them are reserved for sends, but at least
     * 1. The same number is reserved for receives. The maximum number of buffers for adds is n / {@value}, but at least
     * 1 and at most {@link #MAX_ADDED}.
     */
    private static final int SHARE = 4;

    private static final int TO_SEND = 0;
    private static final int TO_RECEIVE = 1;
    private static final int TO_ADD = 2;

    private final int[] free;
    private int freeCount;
    private final byte[] use;
    /** For each purpose, the number of buffers in use ({@code taken}) and the limit of this number ({@code limit}). */
    private final int[] taken = new int[LEAST];
    private final int[] limit = new int[LEAST];
    private final Copies copies;
    private final int[] abandoned;
    private int abandonedCount;

    /**
     * Creates an allocation, at first with all buffers free.
     *
     * @param buffers number of buffers
     * @throws IllegalArgumentException if {@code buffers} is less than {@value #LEAST}
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
        limit[TO_ADD] = Math.clamp(buffers / SHARE, 1, MAX_ADDED);
    }

    /** Takes a free buffer for outbound bytes. Returns its index, or -1 if none is available now. */
    public int takeToSend() {
        return take(TO_SEND);
    }

    /** Takes a free buffer for inbound bytes. Returns its index, or -1 if none is available now. */
    public int takeToReceive() {
        return take(TO_RECEIVE);
    }

    /** Takes a free buffer for the old value of an add. Returns its index, or -1 if none is available now. */
    public int takeToAdd() {
        return take(TO_ADD);
    }

    private int take(int purpose) {
        // The last free buffer is reserved for an add, unless an add already uses a buffer.
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
     * Frees a buffer later, when all copies that have begun so far are complete. Networks must have stopped accessing
     * the buffer.
     */
    public void abandon(int buffer) {
        copies.mark(); // A single mark serves all abandoned buffers, because the newest of their copies completes last.
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
