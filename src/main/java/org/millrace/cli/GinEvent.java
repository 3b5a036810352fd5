package org.millrace.cli;

/** What a rank of GIN's measurements tells the process that shows the table. */
sealed interface GinEvent extends RankEvent {

    /**
     * What one rank measured.
     *
     * @param index of the case in the plan
     * @param nanos time of one operation; 0 if the rank only looked at what arrived
     * @param wrong bytes that are not what they should be
     */
    record Measured(int rank, int index, double nanos, long wrong) implements GinEvent {
    }

    /** A line for the user, shown when all ranks have theirs. */
    record Noted(int rank, String text) implements GinEvent {
    }
}
