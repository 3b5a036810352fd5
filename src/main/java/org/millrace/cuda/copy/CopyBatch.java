package org.millrace.cuda.copy;

import java.util.Arrays;

/**
 * Copies that were asked for and not begun yet, sorted into levels: those of one level may be made in any order, or at
 * once; those of the next are behind them.
 *
 * <pre>
 *   sequence 1      a  b  c           level 0:  a d f
 *   sequence 2      d  e         →    level 1:  b e
 *   free            f                 level 2:  c
 * </pre>
 *
 * <p>
 * They may be spread over several lanes, each of which makes its copies in their order, whatever the others do: the
 * copies of one sequence have one lane.
 *
 * <p>
 * A relaxed copy becomes part of the one before it of its sequence where it goes on where that ended, in target and
 * source; or a row of it, where it is as long, and as far from the row before, in target and in source, as that is from
 * the one before it. One call begins all rows, and an H100's engine makes 128 rows of 7 KiB in the time of four copies.
 */
final class CopyBatch {

    /** As many copies fit in. */
    static final int MOST = 256;
    /** Copies of so many bytes keep an engine busy for longer than it takes to begin them. */
    private static final long ENOUGH_BYTES = 1 << 20;
    /** A longer copy is not made longer: the bytes before it may be there earlier. */
    private static final long LONGEST_MERGED = 256 << 10;
    /** Rows are less than this apart: CU_DEVICE_ATTRIBUTE_MAX_PITCH. */
    private static final long MOST_PITCH = Integer.MAX_VALUE;
    /** Sequences that are told apart; those whose numbers differ by a multiple of it wait for each other. */
    private static final int SEQUENCES = 1 << 10;

    private final long[] to = new long[MOST];
    private final long[] from = new long[MOST];
    /** Of each row. */
    private final long[] bytes = new long[MOST];
    private final int[] rows = new int[MOST];
    /** From row to row, where there are several. */
    private final long[] targetPitch = new long[MOST];
    private final long[] sourcePitch = new long[MOST];
    private final boolean[] fromHost = new boolean[MOST];
    private final int[] level = new int[MOST];
    private final int[] sequence = new int[MOST];
    /** By sequence: the level of its last copy, and the last copy if another may become part of it; -1: none. */
    private final int[] top = new int[SEQUENCES];
    private final int[] growing = new int[SEQUENCES];
    private final int[] sorted = new int[MOST];
    private final int lanes;
    private final int[] lane = new int[MOST];
    /** By sequence: that of its copies; -1: it has none yet. */
    private final int[] laneOf = new int[SEQUENCES];
    private final int[] ends;
    private int nextLane;
    /** Those over which the copies are spread now. */
    private int used = 1;
    private int count;
    private int levels;
    /** The first level for copies that are yet to come. */
    private int floor;
    private long allBytes;

    /** Copies that may be spread over so many lanes. */
    CopyBatch(int lanes) {
        this.lanes = lanes;
        ends = new int[lanes * MOST + 1];
        Arrays.fill(laneOf, -1);
        Arrays.fill(top, -1);
        Arrays.fill(growing, -1);
    }

    boolean isEmpty() {
        return count == 0;
    }

    /** Whether it is time to begin them. */
    boolean isFull() {
        return count == MOST || allBytes >= ENOUGH_BYTES;
    }

    int count() {
        return count;
    }

    /**
     * Adds a copy, for which there is room; false if it became part of another.
     *
     * @param ofHost whether it brings bytes of the host's memory to the device
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
        lane[at] = order > CopyOrder.FREE ? laneOf(of) : anyLane();
        levels = Math.max(levels, level[at] + 1);
        return true;
    }

    /** Whether a copy became part of an earlier one, if there is one that may grow: none from before the floor. */
    private boolean grow(int at, long target, long source, long length, boolean ofHost) {
        if (at < 0 || level[at] < floor || fromHost[at] != ofHost) {
            return false;
        }
        long targetStep = target - to[at];
        long sourceStep = source - from[at];
        if (rows[at] == 1 && targetStep == bytes[at] && sourceStep == bytes[at]
                && bytes[at] + length <= LONGEST_MERGED) {
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
        return step >= length && step <= MOST_PITCH;
    }

    private int laneOf(int of) {
        if (laneOf[of] < 0) {
            laneOf[of] = anyLane();
        }
        return laneOf[of];
    }

    private int anyLane() {
        nextLane = nextLane + 1 < lanes ? nextLane + 1 : 0;
        return nextLane;
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

    /**
     * Sorts by levels, and each level by lanes where that is worth it: copies that are behind all others are not
     * spread.
     */
    int sort(int least) {
        used = lanes > 1 && count >= least && floor == 0 ? lanes : 1;
        int groups = levels * used;
        Arrays.fill(ends, 0, groups + 1, 0);
        for (int i = 0; i < count; i++) {
            ends[group(i) + 1]++;
        }
        for (int i = 0; i < groups; i++) {
            ends[i + 1] += ends[i];
        }
        for (int i = 0; i < count; i++) { // each group's end is its start at first
            sorted[ends[group(i)]++] = i;
        }
        return levels;
    }

    private int group(int copy) {
        return used == 1 ? level[copy] : level[copy] * used + lane[copy];
    }

    /** Over how many lanes the copies are spread, after {@link #sort}. */
    int lanes() {
        return used;
    }

    /** The first place of a level in a lane, after {@link #sort}. */
    int start(int number, int ofLane) {
        int group = number * used + ofLane;
        return group == 0 ? 0 : ends[group - 1];
    }

    /** The place behind the last of a level in a lane. */
    int end(int number, int ofLane) {
        return ends[number * used + ofLane];
    }

    long to(int place) {
        return to[sorted[place]];
    }

    long from(int place) {
        return from[sorted[place]];
    }

    /** Of each row. */
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
                laneOf[sequence[i]] = -1;
            }
        }
        count = 0;
        levels = 0;
        floor = 0;
        allBytes = 0;
    }
}
