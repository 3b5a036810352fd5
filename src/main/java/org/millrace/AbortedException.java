package org.millrace;

import org.jspecify.annotations.Nullable;

/**
 * A rank stopped taking part in the communicator's operations. Either its program aborted the communicator, or its
 * program closed the communicator too early. Too early means that operations of the rank were incomplete, or that the
 * other ranks had begun an operation without the rank. {@link #peer()} returns the number of that rank. The result is
 * empty if that rank throws this exception itself.
 */
public final class AbortedException extends CommunicatorException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates the exception for an abort by the program of this rank.
     *
     * @param rank   the rank that aborts
     * @param reason reason of the abort; null if the program passed none
     */
    public AbortedException(int rank, @Nullable Throwable reason) {
        this("rank " + rank + " aborted the communicator" + (reason == null ? "" : ": " + reason), rank, NO_RANK, null,
                reason);
    }

    /** Creates an exception. The parameters are those of {@link CommunicatorException#CommunicatorException}. */
    public AbortedException(String message, int rank, int peer, @Nullable String operation, @Nullable Throwable cause) {
        super(message, rank, peer, operation, cause);
    }
}
