package org.millrace.proxy;

import org.millrace.MillraceException;

/**
 * Failure of a connection's proxy that cannot continue. The message names the connection, the step, and the last
 * observed state of the shared memory.
 */
public class ProxyException extends MillraceException {

    private static final long serialVersionUID = 1L;

    /** Creates a failure without another exception as its cause. */
    public ProxyException(String message) {
        super(message);
    }

    /** Failure because the two ends of a connection run different operations. */
    public static final class DisagreementException extends ProxyException {

        private static final long serialVersionUID = 1L;

        private final transient ConnectionName connection;
        private final long collective;

        /**
         * Creates a disagreement without the number of a collective.
         *
         * @param message description of the operations at both ends
         */
        public DisagreementException(ConnectionName connection, String message) {
            this(connection, -1, message);
        }

        /**
         * Creates a disagreement.
         *
         * @param collective the number of this end's collective; -1 if it is no collective, or not known
         * @param message    description of the operations at both ends
         */
        public DisagreementException(ConnectionName connection, long collective, String message) {
            super(message);
            this.connection = connection;
            this.collective = collective;
        }

        /** {@return the connection between the two ranks, as named by this end} */
        public ConnectionName connection() {
            return connection;
        }

        /** {@return the number of this end's collective; -1 if it is no collective, or not known} */
        public long collective() {
            return collective;
        }
    }
}
