package org.millrace;

import org.jspecify.annotations.Nullable;

/**
 * A deadline passed: a rank did not join, an operation made no progress, or a wait did not end. The message names the
 * setting that determines the deadline.
 */
public final class DeadlineException extends CommunicatorException {

    private static final long serialVersionUID = 1L;

    /** Creates an exception. The parameters are those of {@link CommunicatorException#CommunicatorException}. */
    public DeadlineException(String message, int rank, int peer, @Nullable String operation,
            @Nullable Throwable cause) {
        super(message, rank, peer, operation, cause);
    }
}
