package org.millrace.cli.gin;

import org.millrace.cli.run.RankEvent;

/** Report of a rank in a measurement of GIN. The process that prints the table receives it. */
sealed interface GinEvent extends RankEvent {

    /**
     * Result of one rank.
     *
     * @param index index of the case in the plan
     * @param nanos time of one operation; 0 if the rank only checked the received data
     * @param wrong number of bytes that differ from the expected ones
     */
    record Measured(int rank, int index, double nanos, long wrong) implements GinEvent {
    }

    /** A line for the user. The lines of all ranks are printed together. */
    record Noted(int rank, String text) implements GinEvent {
    }
}
