package org.millrace.proxy;

import org.millrace.MillraceException;

/**
 * A connection's proxy cannot go on. The message names the connection, the step, and what was last seen of the shared
 * memory.
 */
public class ProxyException extends MillraceException {

    private static final long serialVersionUID = 1L;

    /** A failure with no cause of its own. */
    public ProxyException(String message) {
        super(message);
    }

    /** The two ends of a connection run different operations. */
    public static final class DisagreementException extends ProxyException {

        private static final long serialVersionUID = 1L;

        private final transient ConnectionName connection;
        private final long collective;

        /**
         * A disagreement.
         *
         * @param message what each end runs
         */
        public DisagreementException(ConnectionName connection, String message) {
            this(connection, -1, message);
        }

        /**
         * A disagreement.
         *
         * @param collective the number of this end's collective; -1 if it is none, or not known
         * @param message    what each end runs
         */
        public DisagreementException(ConnectionName connection, long collective, String message) {
            super(message);
            this.connection = connection;
            this.collective = collective;
        }

        /** {@return between whom, as this end sees it} */
        public ConnectionName connection() {
            return connection;
        }

        /** {@return the number of this end's collective; -1 if it is none, or not known} */
        public long collective() {
            return collective;
        }
    }
}
