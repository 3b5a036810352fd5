package org.millrace;

import org.jspecify.annotations.Nullable;

/**
 * A rank is lost. Its process has ended, its host or the network to its host is down, or the rank has left the group.
 * The group cannot continue without this rank.
 */
public final class PeerLostException extends CommunicatorException {

    private static final long serialVersionUID = 1L;

    /** Creates an exception. The parameters are those of {@link CommunicatorException#CommunicatorException}. */
    public PeerLostException(String message, int rank, int peer, @Nullable String operation,
            @Nullable Throwable cause) {
        super(message, rank, peer, operation, cause);
    }
}
