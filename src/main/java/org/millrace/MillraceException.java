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

    /**
     * The same failure for another thread or a later call: of the same kind, with this one as its cause.
     *
     * @param text what it says now
     * @return to be thrown
     */
    public MillraceException again(String text) {
        return new MillraceException(text, this);
    }

    /**
     * The same failure for another thread or a later call: of the same kind if it is one of ours, with it as the cause.
     *
     * @param text   what it says now
     * @param reason what was thrown first
     * @return to be thrown
     */
    public static MillraceException again(String text, Throwable reason) {
        return reason instanceof MillraceException ours ? ours.again(text) : new MillraceException(text, reason);
    }
}
