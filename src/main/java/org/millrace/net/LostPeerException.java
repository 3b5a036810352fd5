package org.millrace.net;

/** The peer ended the connection because the peer had lost another process, on which the peer's work depends. */
public class LostPeerException extends ConnectionException {

    private static final long serialVersionUID = 1L;

    private final String lostPeer;

    /**
     * Creates an exception for a peer whose shutdown message named a lost process.
     *
     * @param message  connection, its progress, and the peer's message
     * @param lostPeer description of the process that the peer has lost
     */
    public LostPeerException(String message, String lostPeer) {
        super(message);
        this.lostPeer = lostPeer;
    }

    /** {@return description of the process that the peer has lost} */
    public String lostPeer() {
        return lostPeer;
    }
}
