package org.millrace.failure;

import org.jspecify.annotations.Nullable;
import org.millrace.AbortedException;
import org.millrace.CommunicatorException;
import org.millrace.DeadlineException;
import org.millrace.MillraceException;
import org.millrace.MismatchException;
import org.millrace.OperationInterruptedException;
import org.millrace.PeerLostException;
import org.millrace.operation.LibraryFailure;

/**
 * Creates exceptions that repeat a failure for another thread or a later call. The stack trace of the new exception is
 * from the thread that repeats the failure.
 */
public final class RepeatedFailure {

    private RepeatedFailure() {}

    /**
     * Returns an exception that repeats a failure. It has the class of the reason if the reason is a
     * {@link CommunicatorException}, otherwise {@link MillraceException}. Its cause is the original exception of the
     * program, the JVM or a library.
     *
     * @param text   the new message
     * @param reason the exception to repeat
     */
    public static MillraceException of(String text, Throwable reason) {
        return during(text, reason, null);
    }

    /**
     * Returns an exception as {@link #of} does. A {@link CommunicatorException} also names the operation in progress.
     *
     * @param what description of the operation in progress; null if none is in progress; ignored if the reason already
     *             names an operation
     */
    public static MillraceException during(String text, Throwable reason, @Nullable String what) {
        Throwable origin = origin(reason);
        if (!(reason instanceof CommunicatorException known)) {
            return new MillraceException(text, origin);
        }
        int rank = known.rank();
        int peer = known.peer().orElse(CommunicatorException.NO_RANK);
        String operation = known.operation().orElse(what);
        return switch (known) {
            case DeadlineException _ -> new DeadlineException(text, rank, peer, operation, origin);
            case MismatchException _ -> new MismatchException(text, rank, peer, operation, origin);
            case PeerLostException _ -> new PeerLostException(text, rank, peer, operation, origin);
            case OperationInterruptedException _ -> new OperationInterruptedException(text, rank, operation, null);
            case AbortedException _ -> new AbortedException(text, rank, peer, operation, origin);
            default -> new CommunicatorException(text, rank, peer, operation, origin);
        };
    }

    /** Returns the first cause that is not an exception of Millrace; null if there is none. */
    private static @Nullable Throwable origin(@Nullable Throwable reason) {
        return reason instanceof MillraceException && !(reason instanceof LibraryFailure) ? origin(reason.getCause())
                : reason;
    }
}
