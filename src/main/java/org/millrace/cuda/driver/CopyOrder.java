package org.millrace.cuda.driver;

/**
 * Order of a copy relative to the copies in flight in its queue. Copies belong to one sequence if a receiver may rely
 * on the order in which their bytes arrive. A strict copy is made after all earlier copies of its sequence. A copy
 * {@link #IN_TURN} is made after all earlier copies and before all later copies. Apart from these rules, copies are
 * made in any order, and many copies are made at the same time.
 */
public final class CopyOrder {

    /** The copy is made after all earlier copies of the queue and before all later copies. */
    public static final int IN_TURN = -1;
    /** The copy is ordered only relative to copies that are {@link #IN_TURN}. */
    public static final int FREE = 0;

    private CopyOrder() {}

    /**
     * Returns the order of a strict copy. A strict copy is made after all earlier copies of the same sequence,
     * including relaxed copies.
     *
     * @param sequence number of the sequence, 0 or more. Copies of different sequences rarely wait for each other.
     */
    public static int strict(int sequence) {
        return sequence + 1 << 1 | 1;
    }

    /**
     * Returns the order of a relaxed copy. A relaxed copy need not follow earlier copies of its sequence, but later
     * strict copies of the sequence follow it.
     */
    public static int relaxed(int sequence) {
        return sequence + 1 << 1;
    }

    static boolean isStrict(int order) {
        return (order & 1) != 0;
    }

    static int sequence(int order) {
        return order >> 1;
    }
}
