package org.millrace.bench.measure;

/**
 * A line of the result before its measurement: the same work by Java and by C.
 *
 * @param id      identifies it within its variant, for baselines and for selection
 * @param group   heading shared by the lines of a group
 * @param title   title for readers
 * @param java    the Java side
 * @param c       the C side, null if it has no meaning in C
 * @param sameWay whether both access memory in the same way, so that the goal is a ratio of 1
 * @param bytes   payload of one operation, for a bandwidth. 0 for none
 */
public record Pair(String id, String group, String title, Loop java, Loop c, boolean sameWay, long bytes) {

    /**
     * Returns a pair with equal memory accesses on both sides.
     *
     * @param id    see {@link Pair}
     * @param group see {@link Pair}
     * @param title see {@link Pair}
     * @param java  the Java side
     * @param c     the C side, null without a C library
     * @return the pair
     */
    public static Pair same(String id, String group, String title, Loop java, Loop c) {
        return new Pair(id, group, title, java, c, true, 0);
    }

    /**
     * Returns a pair with the minimum cost of the task on the C side, without the same accesses.
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
     * Returns the same pair with a payload.
     *
     * @param payload bytes of one operation
     * @return a copy
     */
    public Pair withBytes(long payload) {
        return new Pair(id, group, title, java, c, sameWay, payload);
    }
}
