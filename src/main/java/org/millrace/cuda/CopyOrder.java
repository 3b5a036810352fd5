package org.millrace.cuda;

/**
 * The earlier copies, among those in flight in the same queue, that a copy must not overtake. A receiver may look at
 * the copied bytes in sequence. Such copies must be made one after another. Other copies are made in any order, and
 * many at once.
 */
public final class CopyOrder {

    /** After all earlier copies, and before all later ones. */
    public static final int IN_TURN = -1;
    /** In any order relative to other copies. */
    public static final int FREE = 0;

    private CopyOrder() {}

    /**
     * Returns the order of a copy after all earlier copies of the same sequence, including relaxed ones.
     *
     * @param sequence 0 or more; copies of different sequences do not wait for each other, or rarely do
     */
    public static int strict(int sequence) {
        return sequence + 1 << 1 | 1;
    }

    /** Returns the order of a copy that follows none, but that later strict copies of the same sequence follow. */
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
