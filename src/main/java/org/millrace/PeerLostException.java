package org.millrace;

import org.jspecify.annotations.Nullable;

/**
 * A rank is gone: its process has ended, its host or the network between is down, or it has left. The group cannot go
 * on without it.
 */
public final class PeerLostException extends CommunicatorException {

    private static final long serialVersionUID = 1L;

    /**
     * A failure.
     *
     * @param message   what failed, where, and what to do
     * @param rank      the rank that throws it
     * @param peer      the other rank that has a part in it; {@link #NOBODY} if none is known
     * @param operation what was being done; null if it was no operation
     * @param cause     why; null if there is nothing more to know
     */
    public PeerLostException(String message, int rank, int peer, @Nullable String operation,
            @Nullable Throwable cause) {
        super(message, rank, peer, operation, cause);
    }

    @Override
    protected CommunicatorException copy(String text, @Nullable String what) {
        return new PeerLostException(text, rank(), peerOrNobody(), what, origin());
    }
}
