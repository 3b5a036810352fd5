package org.millrace;

/** An operation, a connection or a library failed. The message says what failed, where, and what to do about it. */
public class MillraceException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    /**
     * A failure with no cause of its own.
     *
     * @param message what failed, where, and what to do
     */
    public MillraceException(String message) {
        super(message);
    }

    /**
     * A failure that another one caused.
     *
     * @param message what failed, where, and what to do
     * @param cause   why
     */
    public MillraceException(String message, Throwable cause) {
        super(message, cause);
    }
}
