package org.millrace.net;

/** The peer ended the connection and said so: nothing failed, and nothing more will come. */
public class PeerClosedException extends ConnectionException {

    private static final long serialVersionUID = 1L;

    /**
     * A peer's shutdown message.
     *
     * @param message which connection, and how far it had come
     */
    public PeerClosedException(String message) {
        super(message);
    }
}
