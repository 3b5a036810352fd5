package org.millrace;

import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * A common operation of a group of ranks failed. The exception names the ranks involved. Its subclasses tell the kinds
 * of failures apart. An exception of this class itself is a failure of this rank, or of another rank that reported it.
 */
public class CommunicatorException extends MillraceException {

    /** Rank number that stands for no rank or an unknown rank. */
    public static final int NOBODY = -1;

    private static final long serialVersionUID = 1L;

    private final int rank;
    private final int peer;
    private final @Nullable String operation;

    /**
     * Creates an exception.
     *
     * @param message   the failure, its place and a remedy
     * @param rank      the rank that throws this
     * @param peer      the other rank involved; {@link #NOBODY} if unknown
     * @param operation the operation in progress, for messages; null without an operation
     * @param cause     the cause, or null
     */
    public CommunicatorException(String message, int rank, int peer, @Nullable String operation,
            @Nullable Throwable cause) {
        super(message, cause);
        this.rank = rank;
        this.peer = peer;
        this.operation = operation;
    }

    /** {@return the rank that throws this, in its communicator's numbering; {@link #NOBODY} if unknown} */
    public final int rank() {
        return rank;
    }

    /** {@return the other rank involved; empty if unknown} */
    public final OptionalInt peer() {
        return peer < 0 ? OptionalInt.empty() : OptionalInt.of(peer);
    }

    /**
     * {@return the operation in progress, for messages, as in {@code "operation 7: all_reduce of 1000 float, sum"};
     * empty without an operation, or if unknown}
     */
    public final Optional<String> operation() {
        return Optional.ofNullable(operation);
    }

    @Override
    public final CommunicatorException again(String text) {
        return copy(text, operation);
    }

    /**
     * Returns the same failure as that of an operation.
     *
     * @param text the new message
     * @param what the operation, unless one is known already
     * @return an exception to throw
     */
    public final CommunicatorException during(String text, String what) {
        return copy(text, operation == null ? what : operation);
    }

    /**
     * Returns another exception of the same kind, with this one's {@link #origin} as its cause.
     *
     * @param text the new message
     * @param what its operation
     * @return an exception to throw
     */
    protected CommunicatorException copy(String text, @Nullable String what) {
        return new CommunicatorException(text, rank, peer, what, origin());
    }

    /** {@return {@link #peer()} as a number, {@link #NOBODY} if unknown} */
    protected final int peerOrNobody() {
        return peer;
    }
}
