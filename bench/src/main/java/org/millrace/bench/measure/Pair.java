package org.millrace.bench.measure;

/**
 * A line of the result to be: the same thing done by Java and by C.
 *
 * @param id      tells it from all others of its variant, for baselines and for selection
 * @param group   lines of a group stand together
 * @param title   what a reader is shown
 * @param java    the Java side
 * @param c       the C side; null if it has no meaning in C
 * @param sameWay whether both touch memory in the same way, so that a ratio of 1 is the goal
 * @param bytes   payload of one operation, for a bandwidth; 0 if there is none
 */
public record Pair(String id, String group, String title, Loop java, Loop c, boolean sameWay, long bytes) {

    /**
     * A pair whose sides touch memory in the same way.
     *
     * @param id    see {@link Pair}
     * @param group see {@link Pair}
     * @param title see {@link Pair}
     * @param java  the Java side
     * @param c     the C side; null without a C library
     * @return the pair
     */
    public static Pair same(String id, String group, String title, Loop java, Loop c) {
        return new Pair(id, group, title, java, c, true, 0);
    }

    /**
     * A pair whose C side is the least that the task could cost, not the same accesses.
     *
     * @param id    see {@link Pair}
     * @param group see {@link Pair}
     * @param title see {@link Pair}
     * @param java  the Java side
     * @param c     the C side, or null
     * @return the pair
     */
    public static Pair bare(String id, String group, String title, Loop java, Loop c) {
        return new Pair(id, group, title, java, c, false, 0);
    }

    /**
     * The same pair with a payload.
     *
     * @param payload bytes of one operation
     * @return a copy
     */
    public Pair withBytes(long payload) {
        return new Pair(id, group, title, java, c, sameWay, payload);
    }
}
