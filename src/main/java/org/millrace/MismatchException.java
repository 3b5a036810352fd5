package org.millrace;

import org.jspecify.annotations.Nullable;

/** The ranks disagree: their operations, the order of their operations, or their settings differ. */
public final class MismatchException extends CommunicatorException {

    private static final long serialVersionUID = 1L;

    /** Creates an exception. The parameters are those of {@link CommunicatorException#CommunicatorException}. */
    public MismatchException(String message, int rank, int peer, @Nullable String operation,
            @Nullable Throwable cause) {
        super(message, rank, peer, operation, cause);
    }
}
