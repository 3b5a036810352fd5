package org.millrace;

import org.jspecify.annotations.Nullable;

/**
 * A rank is lost. Its process has ended, its host or the network to its host is down, or the rank has left the group.
 * The group cannot continue without this rank.
 */
public final class PeerLostException extends CommunicatorException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param message   the failure, its place and a remedy
     * @param rank      the rank that throws this exception
     * @param peer      the peer that the failure concerns; {@link #NO_RANK} if unknown
     * @param operation the operation in progress; null without an operation
     * @param cause     the cause, or null
     */
    public PeerLostException(String message, int rank, int peer, @Nullable String operation,
            @Nullable Throwable cause) {
        super(message, rank, peer, operation, cause);
    }
}
