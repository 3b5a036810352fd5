package org.millrace.net.shm.peer;

import org.millrace.net.ConnectionException;

/** Single copies are required, and the kernel does not allow them: another network is no answer to that. */
public final class SingleCopyException extends ConnectionException {

    private static final long serialVersionUID = 1L;

    SingleCopyException(String message) {
        super(message);
    }
}
