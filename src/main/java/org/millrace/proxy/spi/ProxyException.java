package org.millrace.proxy.spi;

import org.millrace.MillraceException;

/**
 * Failure of a proxy that cannot continue. The message names the connection, the step, and the last observed state of
 * the shared memory.
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
         * Creates a failure without the number of the collective, which is not known.
         *
         * @param message description of the operations at both ends
         */
        public DisagreementException(ConnectionName connection, String message) {
            this(connection, -1, message);
        }

        /**
         * Creates a failure.
         *
         * @param collective number of the collective that this end runs; -1 if this end runs no collective, or if the
         *                   number is not known
         * @param message    description of the operations at both ends
         */
        public DisagreementException(ConnectionName connection, long collective, String message) {
            super(message);
            this.connection = connection;
            this.collective = collective;
        }

        /** {@return the name of the connection, as this end uses it} */
        public ConnectionName connection() {
            return connection;
        }

        /**
         * {@return the number of the collective that this end runs; -1 if this end runs no collective, or if the number
         * is not known}
         */
        public long collective() {
            return collective;
        }
    }
}
