package org.millrace.gin;

/**
 * Which of a device's staging buffers are free, and for what. A frame on its way out keeps its buffer until the peer
 * has found one for what arrives: if what leaves could take them all, two ranks would wait for each other for ever.
 * What arrives keeps its buffer until what came before was written and added: an add that waited for it would wait for
 * ever too. So each of the three has buffers that the others cannot take; the rest belongs to the first that comes. On
 * the agent's thread.
 *
 * <p>
 * A communicator that ends with transfers open leaves its buffers abandoned: its connections are closed, so that no
 * network reads or writes them, but copies that were begun cannot be called off. They are lent again when those are
 * over, which is asked when a buffer is missing and not before.
 */
public final class StagingBuffers {

    /** The copies between the buffers and their device. */
    public interface Copies {

        /** Notes which were begun so far, in place of what was noted before. */
        void mark();

        /** Whether those are over that were begun before the last mark. Does not wait. */
        boolean arePastMark();
    }

    /** The fewest there can be: one for each use. */
    public static final int LEAST = 3;

    /** So many adds may be under way; one of the buffers is theirs alone. */
    public static final int MOST_TO_ADD = 16;
    private static final int ONLY_TO_ADD = 1;
    /** What leaves and what arrives have one of so many to themselves. */
    private static final int SHARE = 4;

    private static final int TO_SEND = 0;
    private static final int TO_RECEIVE = 1;
    private static final int TO_ADD = 2;

    private final int[] free;
    private int freeCount;
    private final byte[] use;
    /** By use: how many are taken, and how many may be. */
    private final int[] taken = new int[LEAST];
    private final int[] most = new int[LEAST];
    private final Copies copies;
    private final int[] abandoned;
    private int abandonedCount;

    /**
     * All of them free.
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
        int forBoth = buffers - ONLY_TO_ADD;
        int reserved = Math.max(1, forBoth / SHARE);
        most[TO_SEND] = forBoth - reserved;
        most[TO_RECEIVE] = forBoth - reserved;
        most[TO_ADD] = Math.clamp(buffers / SHARE, 1, MOST_TO_ADD);
    }

    /** A buffer for bytes that leave, or -1 if there is none for them now. */
    public int takeToSend() {
        return take(TO_SEND);
    }

    /** A buffer for bytes that arrive, or -1 if there is none for them now. */
    public int takeToReceive() {
        return take(TO_RECEIVE);
    }

    /** A buffer for the old value of what is added to, or -1 if too many adds are under way. */
    public int takeToAdd() {
        return take(TO_ADD);
    }

    private int take(int forWhat) {
        // what no other use may have is free for the adds
        int others = forWhat == TO_ADD ? 0 : Math.max(0, ONLY_TO_ADD - taken[TO_ADD]);
        if (taken[forWhat] == most[forWhat] || freeCount == others) {
            return takeBack() ? take(forWhat) : -1;
        }
        taken[forWhat]++;
        int buffer = free[--freeCount];
        use[buffer] = (byte) forWhat;
        return buffer;
    }

    public void give(int buffer) {
        taken[use[buffer]]--;
        free[freeCount++] = buffer;
    }

    /**
     * Frees a buffer that no network reads or writes any more, as soon as the copies that were begun so far are over.
     */
    public void abandon(int buffer) {
        copies.mark(); // one for all that are abandoned: the last is the one to wait for
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
