package org.millrace;

import org.jspecify.annotations.Nullable;

/** An operation, a connection or a library failed. The message states the failure, its place and a remedy. */
public class MillraceException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception without a cause.
     *
     * @param message the failure, its place and a remedy
     */
    public MillraceException(String message) {
        super(message);
    }

    /**
     * Creates an exception with a cause.
     *
     * @param message the failure, its place and a remedy
     * @param cause   the cause, or null
     */
    public MillraceException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
