package org.millrace.net.ucx.library;

import org.millrace.net.ConnectionException;

/** UCX cannot be used here: another network may serve. */
public class UcxUnavailableException extends ConnectionException {

    private static final long serialVersionUID = 1L;

    /** The message says what is missing, where, and what to do. */
    public UcxUnavailableException(String message) {
        super(message);
    }
}
