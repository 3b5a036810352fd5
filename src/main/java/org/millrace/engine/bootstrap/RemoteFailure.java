package org.millrace.engine.bootstrap;

import org.jspecify.annotations.Nullable;
import org.millrace.AbortedException;
import org.millrace.CommunicatorException;
import org.millrace.DeadlineException;
import org.millrace.MismatchException;
import org.millrace.PeerLostException;

/**
 * A rank's failure, as it tells the others and as they learn of it.
 *
 * @param rank      whose it is
 * @param kind      what kind of failure
 * @param peer      the rank that it says has a part in it; {@link CommunicatorException#NOBODY} if there is none
 * @param operation what it was doing; empty if it was no operation
 * @param message   to the others, the rank with its process and host, and what happened; for instance
 *                  {@code rank 3 (pid 123 on node7) is gone: Connection reset}
 */
public record RemoteFailure(int rank, Kind kind, int peer, String operation, String message) {

    /** What kind of failure a rank tells the others of. On the wire by its ordinal. */
    public enum Kind {
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
        static Kind of(Throwable thrown) {
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

    RemoteFailure(int rank, String message) {
        this(rank, Kind.FAILED, CommunicatorException.NOBODY, "", message);
    }

    /** What a rank threw, in its own words: an error that says nothing is told by its name. */
    static RemoteFailure of(int rank, Throwable thrown) {
        String text = thrown.getMessage();
        String message = text == null || thrown instanceof Error ? thrown.toString() : text;
        return thrown instanceof CommunicatorException typed
                ? new RemoteFailure(rank, Kind.of(typed), typed.peer().orElse(CommunicatorException.NOBODY),
                        typed.operation().orElse(""), message)
                : new RemoteFailure(rank, message);
    }

    /** To be thrown by a rank: whose part in it is unknown, or its own, hears who told of it. */
    public CommunicatorException exception(int self) {
        return exception(self, message);
    }

    CommunicatorException exception(int self, String text) {
        int other = peer >= 0 && peer != self ? peer : rank == self ? CommunicatorException.NOBODY : rank;
        return kind.exception(text, self, other, operation.isEmpty() ? null : operation);
    }

    /** A message without the rank that it begins with, for who has said it already. */
    public static String withoutRank(int rank, @Nullable String message) {
        String text = String.valueOf(message);
        String name = "rank " + rank;
        boolean named = text.startsWith(name + ": ") || text.startsWith(name + ", ");
        return named ? text.substring(name.length() + 2) : text;
    }
}
