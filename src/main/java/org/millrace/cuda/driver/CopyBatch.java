package org.millrace.cuda.driver;

import java.util.Arrays;

/**
 * Requested copies that have not been passed to the driver yet, sorted into levels. The copies of one level may be made
 * in any order or at the same time. The copies of a level begin after all copies of the previous level.
 *
 * <p>
 * In the example, the copies a to e are strict copies of two sequences, and the copy f has no order (see
 * {@link CopyOrder}):
 *
 * <pre>
 *   sequence 1      a  b  c           level 0:  a d f
 *   sequence 2      d  e         →    level 1:  b e
 *   free            f                 level 2:  c
 * </pre>
 *
 * <p>
 * A relaxed copy can join the previous copy of its sequence in two ways. If its target and source begin where the
 * previous target and source end, the previous copy becomes longer. If the new copy has the length of the previous row,
 * it can become a further row. From the third row on, the distance from row to row must stay the same, both in the
 * target and in the source. One driver call begins all rows of a copy. The copy engine of an H100 makes 128 rows of 7
 * KiB in the time of four copies.
 */
final class CopyBatch {

    static final int MAX_COPIES = 256;
    /**
     * A batch is full when its copies have at least this number of bytes. The copy engine needs longer for these bytes
     * than the CPU needs for the driver call that begins the copies.
     */
    private static final long FULL_BYTES = 1 << 20;
    /**
     * Maximum length of a copy after its extension, in bytes. In a longer copy, the completion of the first bytes would
     * be delayed.
     */
    private static final long MAX_MERGED_BYTES = 256 << 10;
    /** Maximum distance between the starts of two rows, in bytes: CU_DEVICE_ATTRIBUTE_MAX_PITCH. */
    private static final long MAX_PITCH = Integer.MAX_VALUE;
    /**
     * Size of the tables that are indexed by sequence. Two sequences share an entry if their numbers differ by a
     * multiple of this size. The copies of the two sequences then wait for each other.
     */
    private static final int SEQUENCES = 1 << 10;

    private final long[] to = new long[MAX_COPIES];
    private final long[] from = new long[MAX_COPIES];
    /** Length of each row of a copy, in bytes. */
    private final long[] bytes = new long[MAX_COPIES];
    private final int[] rows = new int[MAX_COPIES];
    /** Distance between the starts of two rows, in bytes; valid for copies of several rows. */
    private final long[] targetPitch = new long[MAX_COPIES];
    private final long[] sourcePitch = new long[MAX_COPIES];
    private final boolean[] fromHost = new boolean[MAX_COPIES];
    private final int[] level = new int[MAX_COPIES];
    private final int[] sequence = new int[MAX_COPIES];
    /**
     * State of each sequence: {@code top} is the level of its last copy, and {@code growing} is the index of its last
     * copy if later copies may join that copy. {@code top} is -1 if the sequence has no copy. {@code growing} is -1 if
     * later copies cannot join its last copy.
     */
    private final int[] top = new int[SEQUENCES];
    private final int[] growing = new int[SEQUENCES];
    private final int[] sorted = new int[MAX_COPIES];
    /** For each level, after {@link #sort}: the index after the last copy of the level in {@link #sorted}. */
    private final int[] ends = new int[MAX_COPIES + 1];
    private int count;
    private int levels;
    /** Lowest level for later copies, one above the level of the last copy with {@link CopyOrder#IN_TURN}. */
    private int floor;
    private long allBytes;

    CopyBatch() {
        Arrays.fill(top, -1);
        Arrays.fill(growing, -1);
    }

    boolean isEmpty() {
        return count == 0;
    }

    /** Returns whether the batch has enough copies or bytes. The caller should then begin the copies. */
    boolean isFull() {
        return count == MAX_COPIES || allBytes >= FULL_BYTES;
    }

    /**
     * Adds a copy. The batch must not contain {@link #MAX_COPIES} copies yet. Returns false if the new copy joined an
     * earlier copy.
     *
     * @param ofHost whether the copy reads host memory and writes device memory
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
     * Tries to join a new copy to the earlier copy at the index {@code at}; {@code at} is -1 if no earlier copy exists.
     * An earlier copy below the {@link #floor} level cannot be extended. Returns whether the copies were joined.
     */
    private boolean grow(int at, long target, long source, long length, boolean ofHost) {
        if (at < 0 || level[at] < floor || fromHost[at] != ofHost) {
            return false;
        }
        long targetStep = target - to[at];
        long sourceStep = source - from[at];
        if (rows[at] == 1 && targetStep == bytes[at] && sourceStep == bytes[at]
                && bytes[at] + length <= MAX_MERGED_BYTES
                && (!ofHost || unit(to[at], bytes[at]) == unit(target, length))) {
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

    /**
     * Returns the size of the largest numbers that a copy can consist of: 8, 4 or 1 bytes. Address and length are
     * multiples of this size. A short copy from host memory is divided only between its numbers, because a kernel may
     * poll a number. If 4 bytes were added to a copy of 8 bytes, the copy would be divided into numbers of 4 bytes. A
     * kernel could then see only a half of the number of 8 bytes.
     */
    private static int unit(long address, long length) {
        long both = address | length;
        return both % Long.BYTES == 0 ? Long.BYTES : both % Integer.BYTES == 0 ? Integer.BYTES : 1;
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

    /** Sorts the copies by level. Copies of one level do not depend on each other. Returns the number of levels. */
    int sort() {
        Arrays.fill(ends, 0, levels + 1, 0);
        for (int i = 0; i < count; i++) {
            ends[level[i] + 1]++;
        }
        for (int i = 0; i < levels; i++) {
            ends[i + 1] += ends[i];
        }
        // In this loop, ends[level] grows from the start of the level to its end.
        for (int i = 0; i < count; i++) {
            sorted[ends[level[i]]++] = i;
        }
        return levels;
    }

    /** Returns the index of the first copy of a level, after {@link #sort}. */
    int start(int number) {
        return number == 0 ? 0 : ends[number - 1];
    }

    /** Returns the index after the last copy of a level, after {@link #sort}. */
    int end(int number) {
        return ends[number];
    }

    long to(int place) {
        return to[sorted[place]];
    }

    long from(int place) {
        return from[sorted[place]];
    }

    /** Returns the length of each row of a copy, in bytes. */
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
