package org.millrace.gin;

import org.millrace.MillraceException;

/** A GIN communicator cannot go on. The message names rank, peer, context and descriptor as far as they are known. */
public class GinException extends MillraceException {

    private static final long serialVersionUID = 1L;

    /** A failure with no cause of its own. */
    public GinException(String message) {
        super(message);
    }

    /** A failure that another one caused. */
    public GinException(String message, Throwable cause) {
        super(message, cause);
    }
}
