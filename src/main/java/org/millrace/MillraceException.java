package org.millrace;

import org.jspecify.annotations.Nullable;
import org.millrace.operation.UserTrace;

/** An operation, a connection or a library failed. The message states the failure, its place and a remedy. */
public class MillraceException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception without a cause.
     *
     * @param message the failure, its place and a remedy
     */
    @SuppressWarnings("this-escape") // UserTrace changes only the stack trace
    public MillraceException(String message) {
        super(message);
        UserTrace.from(this);
    }

    /**
     * Creates an exception with a cause.
     *
     * @param message the failure, its place and a remedy
     * @param cause   the cause, or null
     */
    @SuppressWarnings("this-escape") // UserTrace changes only the stack trace
    public MillraceException(String message, @Nullable Throwable cause) {
        super(message, cause);
        UserTrace.from(this);
    }
}
