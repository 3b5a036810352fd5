package org.millrace.net.socket;

/** Why a listener drops one who connected. */
final class HandshakeException extends Exception {

    private static final long serialVersionUID = 1L;

    private final transient Answer answer;

    /**
     * A reason.
     *
     * @param answer  what the other side is told; null to tell it nothing, as it is no peer of ours
     * @param message what the other side did, for the log
     */
    HandshakeException(Answer answer, String message) {
        super(message, null, false, false);
        this.answer = answer;
    }

    Answer answer() {
        return answer;
    }
}
