package org.millrace.net;

import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;

/** A connection could not be made, was lost, or carried something that is not of this protocol. */
public class ConnectionException extends MillraceException {

    private static final long serialVersionUID = 1L;

    /**
     * A failure with no cause of its own.
     *
     * @param message which connection, to whom, and what happened
     */
    public ConnectionException(String message) {
        super(message);
    }

    /**
     * A failure that another one caused.
     *
     * @param message which connection, to whom, and what happened
     * @param cause   why
     */
    public ConnectionException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
