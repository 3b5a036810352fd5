package org.millrace.cuda;

import java.util.Arrays;

/**
 * Requested copies that have not begun yet, sorted into levels. The copies of one level may be made in any order or at
 * once. The copies of a level begin after the previous level.
 *
 * <pre>
 *   sequence 1      a  b  c           level 0:  a d f
 *   sequence 2      d  e         →    level 1:  b e
 *   free            f                 level 2:  c
 * </pre>
 *
 * <p>
 * A relaxed copy extends the previous copy of its sequence if it continues that copy in target and source. It becomes a
 * further row of that copy if it has the same length and the same distance from the previous row, in target and in
 * source. One call begins all rows, and the engine of an H100 makes 128 rows of 7 KiB in the time of four copies.
 */
final class CopyBatch {

    /** Maximum number of copies in a batch. */
    static final int MAX_COPIES = 256;
    /** Number of bytes that keep an engine busy for longer than the call that begins their copies. */
    private static final long FULL_BYTES = 1 << 20;
    /**
     * Maximum length of an extended copy, in bytes. A longer copy is not extended, so that its first bytes may arrive
     * earlier.
     */
    private static final long MAX_MERGED_BYTES = 256 << 10;
    /** Maximum distance between rows, in bytes: CU_DEVICE_ATTRIBUTE_MAX_PITCH. */
    private static final long MAX_PITCH = Integer.MAX_VALUE;
    /**
     * Number of sequences that are distinguished. Sequences whose numbers differ by a multiple of it wait for each
     * other.
     */
    private static final int SEQUENCES = 1 << 10;

    private final long[] to = new long[MAX_COPIES];
    private final long[] from = new long[MAX_COPIES];
    /** Length of each row, in bytes. */
    private final long[] bytes = new long[MAX_COPIES];
    private final int[] rows = new int[MAX_COPIES];
    /** Distance from row to row, in bytes, for copies of several rows. */
    private final long[] targetPitch = new long[MAX_COPIES];
    private final long[] sourcePitch = new long[MAX_COPIES];
    private final boolean[] fromHost = new boolean[MAX_COPIES];
    private final int[] level = new int[MAX_COPIES];
    private final int[] sequence = new int[MAX_COPIES];
    /** By sequence: the level of its last copy, and the last copy if it may be extended; -1 for none. */
    private final int[] top = new int[SEQUENCES];
    private final int[] growing = new int[SEQUENCES];
    private final int[] sorted = new int[MAX_COPIES];
    /** By level, after {@link #sort}: the index after its last copy. */
    private final int[] ends = new int[MAX_COPIES + 1];
    private int count;
    private int levels;
    /** Lowest level for later copies. */
    private int floor;
    private long allBytes;

    CopyBatch() {
        Arrays.fill(top, -1);
        Arrays.fill(growing, -1);
    }

    boolean isEmpty() {
        return count == 0;
    }

    /** Returns whether the copies should begin now. */
    boolean isFull() {
        return count == MAX_COPIES || allBytes >= FULL_BYTES;
    }

    int count() {
        return count;
    }

    /**
     * Adds a copy, for which the batch has room. Returns false if the copy became part of an earlier one.
     *
     * @param ofHost whether it copies from host memory to the device
     */
    boolean add(long target, long source, long length, int order, boolean ofHost) {
        allBytes += length;
        int of = CopyOrder.sequence(order) & SEQUENCES - 1;
        if (order > CopyOrder.FREE && !CopyOrder.isStrict(order) && grow(growing[of], target, source, length, ofHost)) {
            return false;
        }
        int at = count++;
        to[at] = target;
        from[at] = source;
        bytes[at] = length;
        rows[at] = 1;
        fromHost[at] = ofHost;
        sequence[at] = order > CopyOrder.FREE ? of : -1;
        level[at] = place(order, of, at);
        levels = Math.max(levels, level[at] + 1);
        return true;
    }

    /**
     * Tries to add a copy to an earlier one, if that one exists and may be extended. A copy below the floor level may
     * not. Returns whether it succeeded.
     */
    private boolean grow(int at, long target, long source, long length, boolean ofHost) {
        if (at < 0 || level[at] < floor || fromHost[at] != ofHost) {
            return false;
        }
        long targetStep = target - to[at];
        long sourceStep = source - from[at];
        if (rows[at] == 1 && targetStep == bytes[at] && sourceStep == bytes[at]
                && bytes[at] + length <= MAX_MERGED_BYTES) {
            bytes[at] += length;
            return true;
        }
        if (length != bytes[at]) {
            return false;
        }
        if (rows[at] == 1) {
            if (!isPitch(targetStep, length) || !isPitch(sourceStep, length)) {
                return false;
            }
            targetPitch[at] = targetStep;
            sourcePitch[at] = sourceStep;
        } else if (targetStep != rows[at] * targetPitch[at] || sourceStep != rows[at] * sourcePitch[at]) {
            return false;
        }
        rows[at]++;
        return true;
    }

    private static boolean isPitch(long step, long length) {
        return step >= length && step <= MAX_PITCH;
    }

    private int place(int order, int of, int at) {
        if (order == CopyOrder.IN_TURN) {
            floor = levels + 1;
            return levels;
        }
        int own = floor;
        if (order > CopyOrder.FREE) {
            boolean strict = CopyOrder.isStrict(order);
            own = strict ? Math.max(floor, top[of] + 1) : floor;
            top[of] = Math.max(top[of], own);
            growing[of] = strict ? -1 : at;
        }
        return own;
    }

    /** Sorts the copies by level. Returns the number of levels. */
    int sort() {
        Arrays.fill(ends, 0, levels + 1, 0);
        for (int i = 0; i < count; i++) {
            ends[level[i] + 1]++;
        }
        for (int i = 0; i < levels; i++) {
            ends[i + 1] += ends[i];
        }
        for (int i = 0; i < count; i++) { // each level's end is initially its start
            sorted[ends[level[i]]++] = i;
        }
        return levels;
    }

    /** Returns the first index of a level, after {@link #sort}. */
    int start(int number) {
        return number == 0 ? 0 : ends[number - 1];
    }

    /** Returns the index after the last copy of a level. */
    int end(int number) {
        return ends[number];
    }

    long to(int place) {
        return to[sorted[place]];
    }

    long from(int place) {
        return from[sorted[place]];
    }

    /** Returns the length of each row, in bytes. */
    long bytes(int place) {
        return bytes[sorted[place]];
    }

    int rows(int place) {
        return rows[sorted[place]];
    }

    long targetPitch(int place) {
        return targetPitch[sorted[place]];
    }

    long sourcePitch(int place) {
        return sourcePitch[sorted[place]];
    }

    boolean isFromHost(int place) {
        return fromHost[sorted[place]];
    }

    void clear() {
        for (int i = 0; i < count; i++) {
            if (sequence[i] >= 0) {
                top[sequence[i]] = -1;
                growing[sequence[i]] = -1;
            }
        }
        count = 0;
        levels = 0;
        floor = 0;
        allBytes = 0;
    }
}
