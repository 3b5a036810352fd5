package org.millrace.engine.bootstrap;

import org.jspecify.annotations.Nullable;
import org.millrace.AbortedException;
import org.millrace.CommunicatorException;
import org.millrace.DeadlineException;
import org.millrace.MismatchException;
import org.millrace.PeerLostException;

/** What kind of failure a rank tells the others of. On the wire by its ordinal. */
public enum FailureKind {
    /** None of the others: what it was is in the message alone. */
    FAILED,
    /** A rank is gone: {@link PeerLostException}. */
    LOST,
    /** Something was not done in time: {@link DeadlineException}. */
    LATE,
    /** The ranks disagree: {@link MismatchException}. */
    MISMATCH,
    /** A program gave the communicator up: {@link AbortedException}. */
    ABORTED;

    /** The kind of what was thrown. */
    static FailureKind of(Throwable thrown) {
        return switch (thrown) {
            case PeerLostException lost -> LOST;
            case DeadlineException late -> LATE;
            case MismatchException mismatch -> MISMATCH;
            case AbortedException aborted -> ABORTED;
            default -> FAILED;
        };
    }

    /** As the constructors of the exceptions say. */
    CommunicatorException exception(String message, int rank, int peer, @Nullable String operation) {
        return switch (this) {
            case FAILED -> new CommunicatorException(message, rank, peer, operation, null);
            case LOST -> new PeerLostException(message, rank, peer, operation, null);
            case LATE -> new DeadlineException(message, rank, peer, operation, null);
            case MISMATCH -> new MismatchException(message, rank, peer, operation, null);
            case ABORTED -> new AbortedException(message, rank, peer, operation, null);
        };
    }
}
