package org.millrace.net.shm.file;

import org.millrace.net.ConnectionException;

/** Two processes cannot share memory, or there is not enough of it: another network may serve them. */
public class ShmUnavailableException extends ConnectionException {

    private static final long serialVersionUID = 1L;

    public ShmUnavailableException(String message) {
        super(message);
    }

    /** The message says what is missing, where, and what to do. */
    public ShmUnavailableException(String message, Throwable cause) {
        super(message, cause);
    }
}
