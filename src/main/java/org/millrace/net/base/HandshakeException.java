package org.millrace.net.base;

/** Why a listener drops one who connected. */
public final class HandshakeException extends Exception {

    private static final long serialVersionUID = 1L;

    private final transient HandshakeReply answer;

    /**
     * A reason.
     *
     * @param answer  what the other side is told; null to tell it nothing, as it is no peer of ours
     * @param message what the other side did, for the log
     */
    public HandshakeException(HandshakeReply answer, String message) {
        super(message, null, false, false);
        this.answer = answer;
    }

    public HandshakeReply answer() {
        return answer;
    }
}
