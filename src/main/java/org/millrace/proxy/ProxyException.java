package org.millrace.proxy;

import org.millrace.MillraceException;

/**
 * A connection's proxy cannot go on. The message names the connection, the step, and what was last seen of the shared
 * memory.
 */
public class ProxyException extends MillraceException {

    private static final long serialVersionUID = 1L;

    /**
     * A failure with no cause of its own.
     *
     * @param message connection, step, and what happened
     */
    public ProxyException(String message) {
        super(message);
    }

    /** The two ends of a connection run different operations. */
    public static final class DisagreementException extends ProxyException {

        private static final long serialVersionUID = 1L;

        /**
         * A disagreement.
         *
         * @param message what each end runs
         */
        public DisagreementException(String message) {
            super(message);
        }
    }

    /**
     * A failure that another one caused.
     *
     * @param message connection, step, and what happened
     * @param cause   why
     */
    public ProxyException(String message, Throwable cause) {
        super(message, cause);
    }
}
