package org.millrace.trace.why;

import org.jspecify.annotations.Nullable;
import org.millrace.trace.reader.TracedCommunicator;
import org.millrace.trace.reader.TracedCommunicator.Operation;
import org.millrace.trace.reader.TracedConnection;
import org.millrace.trace.reader.TracedProcess;
import org.millrace.trace.reader.TracedState;

/**
 * A rank of a communicator.
 *
 * @param process      whose it is
 * @param state        of the process
 * @param hash         of the communicator
 * @param rank         its number; -1 if nobody told
 * @param communicator what was written down of it: its operations; null if nothing was
 */
record TracedRank(TracedProcess process, ProcessState state, long hash, int rank,
        @Nullable TracedCommunicator communicator) {

    private static final long UNKNOWN = -2;

    /** "rank 3 (pid 4711 on a1, stopped)". */
    String words() {
        return (rank < 0 ? "the rank of " : "rank " + rank + " (") + "pid " + process.identity().pid() + " on "
                + process.host() + ", " + state.label() + (rank < 0 ? "" : ")");
    }

    /** "rank 3", for the second time that it is named. */
    String shortly() {
        return rank < 0 ? "pid " + process.identity().pid() : "rank " + rank;
    }

    /** The last collective that was enqueued: its number in the communicator; -1 for none. */
    long lastCollective() {
        if (communicator == null) {
            return UNKNOWN;
        }
        for (Operation operation : communicator.last().reversed()) {
            if (operation.peer() < 0) {
                return operation.sequence();
            }
        }
        return communicator.enqueued() <= communicator.last().size() ? -1 : UNKNOWN;
    }

    /** When it was first heard of. */
    long opened() {
        return communicator != null ? communicator.opened()
                : process.connections()
                        .stream()
                        .filter(each -> each.identity().communicator() == hash && each.state() != TracedState.CLOSED)
                        .mapToLong(TracedConnection::opened)
                        .min()
                        .orElse(process.epochNanos());
    }

    /** When it was last heard of. */
    long lastSeen() {
        return state == ProcessState.DEAD ? process.heartbeat() : process.read();
    }

    /** Whether anybody told of its collectives. */
    boolean tellsCollectives() {
        return lastCollective() != UNKNOWN;
    }
}
