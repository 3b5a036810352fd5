package org.millrace.net;

/** The peer ended the connection because it had lost another process, without which its work cannot go on. */
public class LastWordsException extends ConnectionException {

    private static final long serialVersionUID = 1L;

    private final String lostPeer;

    /**
     * A peer's last words.
     *
     * @param message  which connection, how far it had come, and what the peer said
     * @param lostPeer the process that the peer has lost, for messages
     */
    public LastWordsException(String message, String lostPeer) {
        super(message);
        this.lostPeer = lostPeer;
    }

    /** {@return the process that the peer has lost} */
    public String lostPeer() {
        return lostPeer;
    }
}
