package org.millrace;

import org.jspecify.annotations.Nullable;

/** The ranks disagree: their operations, the order of their operations, or their settings differ. */
public final class MismatchException extends CommunicatorException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param message   the failure, its place and a remedy
     * @param rank      the rank that throws this exception
     * @param peer      the peer that the failure concerns; {@link #NO_RANK} if unknown
     * @param operation the operation in progress; null without an operation
     * @param cause     the cause, or null
     */
    public MismatchException(String message, int rank, int peer, @Nullable String operation,
            @Nullable Throwable cause) {
        super(message, rank, peer, operation, cause);
    }
}
