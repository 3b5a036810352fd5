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

    /**
     * Returns the same failure for another thread or a later call. It has the same kind, and this one's {@link #origin}
     * as its cause.
     *
     * @param text the new message
     * @return an exception to throw
     */
    public MillraceException again(String text) {
        return new MillraceException(text, origin());
    }

    /**
     * {@return the original exception of the program, the JVM or a library, below all exceptions that only repeat the
     * failure; null without one}
     */
    protected @Nullable Throwable origin() {
        return getCause() instanceof MillraceException ours ? ours.origin() : getCause();
    }

    /**
     * Returns the same failure for another thread or a later call. It has the same kind if the reason is an exception
     * of Millrace.
     *
     * @param text   the new message
     * @param reason the original exception
     * @return an exception to throw
     */
    public static MillraceException again(String text, Throwable reason) {
        return reason instanceof MillraceException ours ? ours.again(text) : new MillraceException(text, reason);
    }
}
