package org.millrace.cli.launch;

import org.millrace.Route;

/** What a rank tells the process that shows the table. */
public sealed interface RankEvent {

    /**
     * Who says it.
     *
     * @return the rank
     */
    int rank();

    /**
     * The rank has joined the communicator.
     *
     * @param rank   which rank
     * @param pid    its process
     * @param host   its machine
     * @param device what runs its operations
     */
    record Joined(int rank, long pid, String host, String device) implements RankEvent {
    }

    /**
     * The rank has finished a case.
     *
     * @param rank       which rank
     * @param index      of the case
     * @param outOfPlace what was measured
     * @param inPlace    what was measured
     */
    record Measured(int rank, int index, CaseResult outOfPlace, CaseResult inPlace) implements RankEvent {
    }

    /**
     * How a case's operations travelled, told before it is {@linkplain Measured finished}.
     *
     * @param rank  which rank
     * @param index of the case
     * @param route this rank's side of it; why it was no other is left out
     */
    record Routed(int rank, int index, Route route) implements RankEvent {
    }

    /**
     * The rank has finished a cell of the matrix.
     *
     * @param rank    which rank
     * @param cell    number of the cell
     * @param wrong   elements that were not what they must be
     * @param ran     operations that ran as they were meant to
     * @param refusal why others could not; empty if all did
     * @param failure what went wrong besides; empty if nothing did
     */
    record Checked(int rank, int cell, long wrong, int ran, String refusal, String failure) implements RankEvent {
    }

    /**
     * The rank has something to say to the user.
     *
     * @param rank which rank
     * @param text a line
     */
    record Noted(int rank, String text) implements RankEvent {
    }

    /**
     * A fault that was planted has happened in the rank's process.
     *
     * @param rank  which rank
     * @param fault its text, in the one form that it has in every process
     */
    record Befallen(int rank, String fault) implements RankEvent {
    }

    /**
     * The rank has finished them all and left the communicator.
     *
     * @param rank which rank
     */
    record Finished(int rank) implements RankEvent {
    }

    /**
     * The rank gives up.
     *
     * @param rank    which rank
     * @param message why
     * @param trace   the stack trace, or empty
     * @param died    whether it could not even say so itself
     */
    record Failed(int rank, String message, String trace, boolean died) implements RankEvent {
    }
}
