package org.millrace;

import org.jspecify.annotations.Nullable;

/**
 * Something was not done in time: a rank did not come, an operation made no progress, or what was waited for is not
 * complete. Which limit it was is in the message, with the name of its setting.
 */
public final class DeadlineException extends CommunicatorException {

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
    public DeadlineException(String message, int rank, int peer, @Nullable String operation,
            @Nullable Throwable cause) {
        super(message, rank, peer, operation, cause);
    }

    @Override
    protected CommunicatorException copy(String text, @Nullable String what) {
        return new DeadlineException(text, rank(), peerOrNobody(), what, origin());
    }
}
