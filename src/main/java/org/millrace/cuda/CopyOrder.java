package org.millrace.cuda;

/**
 * What a copy must not be made before, of those that were begun before it in the same queue and are under way. A
 * receiver may look at what copies brought, one behind the other; then they must be made one behind the other. Others
 * are made in any order, and many at once.
 */
public final class CopyOrder {

    /** Behind all, and before all that follow. */
    public static final int IN_TURN = -1;
    /** Whatever the others are. */
    public static final int FREE = 0;

    private CopyOrder() {}

    /**
     * Behind all of the same sequence, free ones included.
     *
     * @param sequence 0 or more; of two with different numbers none waits for the other, or seldom
     */
    public static int strict(int sequence) {
        return sequence + 1 << 1 | 1;
    }

    /** Behind none; but strict ones of the same sequence are behind it. */
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
