package org.millrace.net.shm;

import org.millrace.net.ConnectionException;

/** Single copies are required, and the kernel does not allow them: another network is no answer to that. */
final class SingleCopyException extends ConnectionException {

    private static final long serialVersionUID = 1L;

    SingleCopyException(String message) {
        super(message);
    }
}
