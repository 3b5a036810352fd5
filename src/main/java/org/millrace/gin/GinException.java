package org.millrace.gin;

import org.millrace.MillraceException;

/**
 * Failure of a GIN communicator. The message contains the rank, the peer, the context and the descriptor, as far as
 * they are known.
 */
public class GinException extends MillraceException {

    private static final long serialVersionUID = 1L;

    /** Creates a failure without another exception as its cause. */
    public GinException(String message) {
        super(message);
    }

    /** Creates a failure that another exception caused. */
    public GinException(String message, Throwable cause) {
        super(message, cause);
    }
}
