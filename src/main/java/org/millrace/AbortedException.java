package org.millrace;

import org.jspecify.annotations.Nullable;

/**
 * A program aborted the communicator, or closed it before what it had begun was complete, or without an operation that
 * others had begun. {@link #peer()} is the rank that did so; empty if it was this one.
 */
public final class AbortedException extends CommunicatorException {

    private static final long serialVersionUID = 1L;

    /**
     * A program's own abort.
     *
     * @param rank   the rank that aborts
     * @param reason what made it give up; null if it did not say
     */
    public AbortedException(int rank, @Nullable Throwable reason) {
        this("rank " + rank + " aborted the communicator" + (reason == null ? "" : ": " + reason), rank, NOBODY, null,
                reason);
    }

    /**
     * A failure.
     *
     * @param message   what failed, where, and what to do
     * @param rank      the rank that throws it
     * @param peer      the other rank that has a part in it; {@link #NOBODY} if none is known
     * @param operation what was being done; null if it was no operation
     * @param cause     why; null if there is nothing more to know
     */
    public AbortedException(String message, int rank, int peer, @Nullable String operation, @Nullable Throwable cause) {
        super(message, rank, peer, operation, cause);
    }

    @Override
    protected CommunicatorException copy(String text, @Nullable String what) {
        return new AbortedException(text, rank(), peerOrNobody(), what, origin());
    }
}
