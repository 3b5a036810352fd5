package org.millrace.cli;

import org.millrace.Route;

/** What a rank of a measurement tells the process that shows the table. */
sealed interface PerfEvent extends RankEvent {

    record Joined(int rank, long pid, String host, String device) implements PerfEvent {
    }

    /** The rank has finished the case of this index. */
    record Measured(int rank, int index, CaseResult outOfPlace, CaseResult inPlace) implements PerfEvent {
    }

    /** How a case's operations travelled, told before it is {@linkplain Measured finished}. */
    record Routed(int rank, int index, Route route) implements PerfEvent {
    }

    /** For how long a case's kernels ran, told before it is {@linkplain Measured finished}. */
    record Profiled(int rank, int index, String text) implements PerfEvent {
    }

    /** A planted fault has happened in the rank's process: its text is the same in every process. */
    record FaultHappened(int rank, String fault) implements PerfEvent {
    }

    /**
     * What one rank, or all together, measured of a case, in place or not.
     *
     * @param nanos time of one operation, averaged over the iterations
     * @param wrong elements that are not what they should be; {@link #UNCHECKED} if nobody looked
     */
    public record CaseResult(double nanos, long wrong) {

        public static final long UNCHECKED = -1;
        /** Of an operation that has no such form. */
        static final CaseResult NONE = new CaseResult(0, UNCHECKED);

        /**
         * Both ranks' wrong elements, and the time of the slower one: a collective is over when the last rank has its
         * result.
         */
        CaseResult with(CaseResult other) {
            return new CaseResult(Math.max(nanos, other.nanos), wrong == UNCHECKED ? UNCHECKED : wrong + other.wrong);
        }

        boolean isMeasured() {
            return nanos > 0;
        }

        boolean isChecked() {
            return wrong != UNCHECKED;
        }
    }
}
