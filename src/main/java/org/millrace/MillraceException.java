package org.millrace;

import org.jspecify.annotations.Nullable;

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
     * @param cause   why; null if there is nothing more to know
     */
    public MillraceException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }

    /**
     * The same failure for another thread or a later call: of the same kind, with this one's {@link #origin} as its
     * cause.
     *
     * @param text what it says now
     * @return to be thrown
     */
    public MillraceException again(String text) {
        return new MillraceException(text, origin());
    }

    /**
     * {@return what is beneath all that only says the same again: the program's, the JVM's or a library's own
     * exception; null if there is none}
     */
    protected @Nullable Throwable origin() {
        return getCause() instanceof MillraceException ours ? ours.origin() : getCause();
    }

    /**
     * The same failure for another thread or a later call: of the same kind if it is one of ours.
     *
     * @param text   what it says now
     * @param reason what was thrown first
     * @return to be thrown
     */
    public static MillraceException again(String text, Throwable reason) {
        return reason instanceof MillraceException ours ? ours.again(text) : new MillraceException(text, reason);
    }
}
