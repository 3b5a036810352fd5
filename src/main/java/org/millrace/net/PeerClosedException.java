package org.millrace.net;

/**
 * The peer ended the connection normally, with a shutdown message. The connection has not failed, and no more data will
 * arrive.
 */
public class PeerClosedException extends ConnectionException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception for a peer's shutdown message.
     *
     * @param message text with the connection and its progress
     */
    public PeerClosedException(String message) {
        super(message);
    }
}
