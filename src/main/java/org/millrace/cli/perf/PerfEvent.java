package org.millrace.cli.perf;

import org.millrace.Route;
import org.millrace.cli.run.RankEvent;

/** Report of a rank in a measurement. The process that prints the table receives it. */
public sealed interface PerfEvent extends RankEvent {

    record Joined(int rank, long pid, String host, String device) implements PerfEvent {
    }

    /** The rank has finished the case with this index in the plan. */
    record Measured(int rank, int index, CaseResult outOfPlace, CaseResult inPlace) implements PerfEvent {
    }

    /** Route of a case's operations, reported before the case is {@linkplain Measured finished}. */
    record Routed(int rank, int index, Route route) implements PerfEvent {
    }

    /** Run times of a case's kernels, reported before the case is {@linkplain Measured finished}. */
    record Profiled(int rank, int index, String text) implements PerfEvent {
    }

    /** A planted fault has happened in the rank's process. The text of a fault is equal in all processes. */
    record FaultHappened(int rank, String fault) implements PerfEvent {
    }

    /**
     * Result of a case, in place or out of place, for one rank or all ranks together.
     *
     * @param nanos time of one operation, averaged over the iterations
     * @param wrong number of wrong elements; {@link #UNCHECKED} if they were not checked
     */
    public record CaseResult(double nanos, long wrong) {

        public static final long UNCHECKED = -1;
        /** Result of an operation that has no in-place form. */
        static final CaseResult NONE = new CaseResult(0, UNCHECKED);

        /**
         * Combines the results of two ranks: adds their numbers of wrong elements, and takes the time of the slower
         * rank. A collective is complete when the last rank has its result.
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
