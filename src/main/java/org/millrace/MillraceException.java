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
     * Returns an exception of the same class for another thread or a later call. Its cause is the {@link #origin} of
     * this exception.
     *
     * @param text the new message
     * @return an exception to throw
     */
    public MillraceException again(String text) {
        return new MillraceException(text, origin());
    }

    /**
     * {@return the first cause that is not an exception of Millrace: the original exception of the program, the JVM or
     * a library; null without one}
     */
    protected @Nullable Throwable origin() {
        return getCause() instanceof MillraceException ours ? ours.origin() : getCause();
    }

    /**
     * Returns an exception that repeats a failure for another thread or a later call. It has the class of the reason if
     * the reason is an exception of Millrace, otherwise {@link MillraceException}.
     *
     * @param text   the new message
     * @param reason the exception to repeat
     * @return an exception to throw
     */
    public static MillraceException again(String text, Throwable reason) {
        return reason instanceof MillraceException ours ? ours.again(text) : new MillraceException(text, reason);
    }
}
