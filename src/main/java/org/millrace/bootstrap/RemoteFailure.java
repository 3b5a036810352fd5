package org.millrace.bootstrap;

import org.jspecify.annotations.Nullable;
import org.millrace.AbortedException;
import org.millrace.CommunicatorException;
import org.millrace.DeadlineException;
import org.millrace.MismatchException;
import org.millrace.PeerLostException;

/**
 * Failure of a rank, as ranks report it to each other.
 *
 * @param rank      rank that failed
 * @param kind      kind of the failure
 * @param peer      other rank in the failure, according to the failed rank; {@link CommunicatorException#NO_RANK} if
 *                  none
 * @param operation operation in progress; empty if no operation was in progress
 * @param message   description of the failure. For the other ranks, rank 0 adds the failed rank, its process and its
 *                  host. An example is {@code rank 3 (pid 123 on node7) is gone: Connection reset}
 */
public record RemoteFailure(int rank, Kind kind, int peer, String operation, String message) {

    /** Kinds of failure that a rank reports to the others. The ordinal of a constant is sent over the network. */
    public enum Kind {
        /** Any other failure, which only the message describes. */
        FAILED,
        /** A rank is gone: {@link PeerLostException}. */
        LOST,
        /** A deadline has passed: {@link DeadlineException}. */
        LATE,
        /** The ranks disagree: {@link MismatchException}. */
        MISMATCH,
        /** A program aborted the communicator: {@link AbortedException}. */
        ABORTED;

        static Kind of(Throwable thrown) {
            return switch (thrown) {
                case PeerLostException lost -> LOST;
                case DeadlineException late -> LATE;
                case MismatchException mismatch -> MISMATCH;
                case AbortedException aborted -> ABORTED;
                default -> FAILED;
            };
        }

        /** Creates the exception of this kind. The parameters are passed to the exception's constructor. */
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
        this(rank, Kind.FAILED, CommunicatorException.NO_RANK, "", message);
    }

    /**
     * Returns the failure of a rank with the message of the exception. An {@link Error}, or an exception without a
     * message, is described with the name of its class.
     */
    static RemoteFailure of(int rank, Throwable thrown) {
        String text = thrown.getMessage();
        String message = text == null || thrown instanceof Error ? thrown.toString() : text;
        return thrown instanceof CommunicatorException typed
                ? new RemoteFailure(rank, Kind.of(typed), typed.peer().orElse(CommunicatorException.NO_RANK),
                        typed.operation().orElse(""), message)
                : new RemoteFailure(rank, message);
    }

    /**
     * Returns the exception that rank {@code self} throws for this failure. The exception's peer is the involved rank.
     * If the involved rank is unknown or is {@code self}, the exception's peer is the rank that failed.
     */
    public CommunicatorException exception(int self) {
        return exception(self, message);
    }

    CommunicatorException exception(int self, String text) {
        int other = peer >= 0 && peer != self ? peer : rank == self ? CommunicatorException.NO_RANK : rank;
        return kind.exception(text, self, other, operation.isEmpty() ? null : operation);
    }

    /** Returns a message without the rank number at its beginning, for callers that already name the rank. */
    public static String withoutRank(int rank, @Nullable String message) {
        String text = String.valueOf(message);
        String name = "rank " + rank;
        boolean named = text.startsWith(name + ": ") || text.startsWith(name + ", ");
        return named ? text.substring(name.length() + 2) : text;
    }
}
