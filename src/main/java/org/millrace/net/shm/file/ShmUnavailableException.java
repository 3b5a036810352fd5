package org.millrace.net.shm.file;

import org.millrace.net.ConnectionException;

/** Two processes cannot share memory, or there is not enough of it: another network may serve them. */
public class ShmUnavailableException extends ConnectionException {

    private static final long serialVersionUID = 1L;

    /**
     * A reason without a cause of its own.
     *
     * @param message what is missing, where, and what to do
     */
    public ShmUnavailableException(String message) {
        super(message);
    }

    /**
     * A reason that another failure caused.
     *
     * @param message what is missing, where, and what to do
     * @param cause   why
     */
    public ShmUnavailableException(String message, Throwable cause) {
        super(message, cause);
    }
}
