package org.millrace.bootstrap;

import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.connection.PeerText;

/**
 * Identity of a rank: its number, process, host and run. Messages name a rank by its number, process and host.
 *
 * @param run        {@code MILLRACE_RUN_ID} of the process; empty if it is not set. Two runs may use the same address
 * @param kernel     identifier of the Linux kernel that {@code startTicks} refers to; see {@link Machine#kernel}
 * @param startTicks start time of the process, in hundredths of a second since this Linux kernel started; 0 if unknown
 */
record RankIdentity(int rank, long pid, String host, String run, String kernel, long startTicks) {

    private static final int MAX_SHOWN_RUN_CHARS = 64;
    private static final int MILLIS_PER_TICK = 10;
    private static final int MAX_TICKS = 1 << 29;
    private static final long STARTED_BEFORE = 1L << 62;

    /** Creates the identity of a process without {@code MILLRACE_RUN_ID} and with an unknown start time. */
    RankIdentity(int rank, long pid, String host) {
        this(rank, pid, host, "", "", 0);
    }

    static RankIdentity local(int rank, String run) {
        return new RankIdentity(rank, ProcessIdentity.CURRENT.pid(), Machine.NAME, PeerText.line(run), Machine.kernel(),
                ProcessIdentity.CURRENT.startTicks());
    }

    /**
     * Returns whether the order of two processes' starts is known and needed. The order is needed if neither process
     * has a {@code MILLRACE_RUN_ID}, because only the start times can then show whether both belong to the same run.
     * The order is known if both start times are known and count from the start of the same Linux kernel.
     */
    private boolean comparable(RankIdentity other) {
        return run.isEmpty() && other.run.isEmpty() && startTicks != 0 && other.startTicks != 0
                && kernel.equals(other.kernel);
    }

    /** Returns the milliseconds from the start of this process to the start of another process, possibly negative. */
    private long millisBefore(RankIdentity other) {
        return (other.startTicks - startTicks) * MILLIS_PER_TICK;
    }

    /**
     * Returns the number of milliseconds from this process's start to rank 0's start. Returns -1 if this process
     * started later, or if the start times are not {@link #comparable}. Process ids give the order within one tick.
     */
    long millisBeforeZero(RankIdentity zero) {
        long before = millisBefore(zero);
        return comparable(zero) && (before > 0 || before == 0 && pid < zero.pid) ? before : -1;
    }

    /**
     * Returns whether this process, and not {@code first}, belongs to the run of rank 0. Both processes claim the same
     * rank number and have no {@code MILLRACE_RUN_ID}. On rank 0's machine, a process that started after rank 0 has
     * priority over a process that started before rank 0. If both started before rank 0, or both after rank 0, the
     * process that started nearest to rank 0's start has priority. On another machine, the process that started later
     * has priority. In each case, the process without priority may be left over from an earlier run.
     */
    boolean replaces(RankIdentity first, RankIdentity zero) {
        return comparable(first) && (comparable(zero) ? distance(zero) < first.distance(zero)
                : startTicks > first.startTicks || startTicks == first.startTicks && pid > first.pid);
    }

    /**
     * Returns whether the start times of this process and {@code first} are needed but have no order, because the
     * processes run on different machines. If both processes claim the same rank number, at most one process belongs to
     * the run of rank 0.
     */
    boolean hasNoOrder(RankIdentity first) {
        return run.isEmpty() && first.run.isEmpty() && startTicks != 0 && first.startTicks != 0
                && !kernel.equals(first.kernel);
    }

    /**
     * Returns the distance of this process's start from the start of rank 0, for comparisons. Any start before rank 0
     * has a greater distance than any start after rank 0. A difference of one tick may be an effect of rounding. If the
     * starts differ by one tick at most, process ids are more precise than the start times.
     */
    private long distance(RankIdentity zero) {
        long ticks = Math.clamp(Math.abs(startTicks - zero.startTicks) - 1, 0, MAX_TICKS);
        long distance = (ticks << Integer.SIZE) + Math.min(Math.abs(pid - zero.pid), Integer.MAX_VALUE);
        return millisBeforeZero(zero) < 0 ? distance : distance | STARTED_BEFORE;
    }

    /** Returns why this rank cannot join the group of rank 0; null if both belong to the same run. */
    @Nullable
    String otherRun(RankIdentity zero) {
        return run.equals(zero.run) ? null
                : this + " belongs to " + shownRun() + ", " + zero + " to " + zero.shownRun()
                        + "; end the other run, or use another port, and set MILLRACE_RUN_ID to the same text on"
                        + " all ranks of one run";
    }

    private String shownRun() {
        return run.isEmpty() ? "a run without MILLRACE_RUN_ID"
                : "run \"" + run.substring(0, Math.min(run.length(), MAX_SHOWN_RUN_CHARS)) + '"';
    }

    /** Returns the process, its host, and its start if the start distinguishes runs, for messages. */
    String process(RankIdentity zero) {
        long before = millisBefore(zero);
        return process() + (comparable(zero) && pid != zero.pid ? String.format(Locale.ROOT,
                " (started %,d ms %s rank 0)", Math.abs(before), before < 0 ? "after" : "before") : "");
    }

    /** Returns the process and its host, for a message that already names the rank. */
    String process() {
        return "pid " + pid + " on " + host;
    }

    @Override
    public String toString() {
        return "rank " + rank + " (" + process() + ")";
    }
}
