package org.millrace.cuda.driver;

import java.util.Arrays;

/**
 * Decides which relaxed copies are spread over all workers. A run is the relaxed copies of a worker's sequences between
 * two strict copies. Spread copies of a run are made in parallel, but the host's thread then waits some 13 µs before it
 * posts the strict copy. Without spreading, the worker makes one copy after the other in some 2.4 µs each, while the
 * workers of other sequences do the same. A run is therefore spread if it is long compared to the number of active
 * workers. The length of the previous run predicts the length of the next one. The times are those of an H200 and of
 * copies of 8 bytes to 7 KiB from host memory.
 */
final class CopyRuns {

    /**
     * Number of copies for each active worker up to which a run is not spread. One to 16 active workers with runs of 1
     * to 63 copies were measured.
     */
    static final int COPIES_BY_WORKER = 6;
    /** Number of successive copies whose workers count as active. */
    static final int WINDOW = 256;

    /** For each worker: length of the current run. */
    private final int[] lengths;
    /** For each worker: whether the previous run was long. */
    private final boolean[] wasLong;
    /** Workers of the current window, one bit for each worker. */
    private long active;
    private int copiesInWindow;
    /** Number of active workers in the previous window. */
    private int activeBefore = 1;

    /** @param workers number of the last worker, less than 64 */
    CopyRuns(int workers) {
        lengths = new int[workers + 1];
        wasLong = new boolean[workers + 1];
        // A program without strict copies has one endless run.
        Arrays.fill(wasLong, true);
    }

    /**
     * Records the next copy of a worker's sequences.
     *
     * @param worker worker of the copy's sequence
     * @return whether the copy is spread; never true for a strict copy
     */
    boolean spreads(int worker, boolean strict) {
        active |= 1L << worker;
        copiesInWindow++;
        if (copiesInWindow == WINDOW) {
            activeBefore = Long.bitCount(active);
            active = 0;
            copiesInWindow = 0;
        }
        int limit = COPIES_BY_WORKER * activeBefore;
        if (!strict && lengths[worker] <= limit) {
            lengths[worker]++;
        }
        boolean isLong = lengths[worker] > limit;
        if (strict) {
            wasLong[worker] = isLong;
            lengths[worker] = 0;
            return false;
        }
        return isLong || wasLong[worker];
    }
}
