package org.millrace.bootstrap;

import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.PeerText;

/**
 * Identity of a rank: its number, process, host and run. Messages name a rank by the first three.
 *
 * @param run {@code MILLRACE_RUN_ID} of the process; empty without one. Two runs may use one address
 */
record RankIdentity(int rank, long pid, String host, String run) {

    private static final int MAX_SHOWN_RUN_CHARS = 64;

    /** Creates the identity of a process without {@code MILLRACE_RUN_ID}. */
    RankIdentity(int rank, long pid, String host) {
        this(rank, pid, host, "");
    }

    static RankIdentity local(int rank, String run) {
        return new RankIdentity(rank, ProcessHandle.current().pid(), Machine.NAME, PeerText.line(run));
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

    /** Returns the process and its host, for a message that already names the rank. */
    String process() {
        return "pid " + pid + " on " + host;
    }

    @Override
    public String toString() {
        return "rank " + rank + " (" + process() + ")";
    }
}
