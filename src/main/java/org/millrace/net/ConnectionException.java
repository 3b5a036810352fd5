package org.millrace.net;

import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;

/** A connection failed: it could not be established, was lost, or carried data that violates its protocol. */
public class ConnectionException extends MillraceException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception without a cause.
     *
     * @param message text with the connection, the peer and the event
     */
    public ConnectionException(String message) {
        super(message);
    }

    /**
     * Creates an exception with a cause.
     *
     * @param message text with the connection, the peer and the event
     * @param cause   the cause, or null
     */
    public ConnectionException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
