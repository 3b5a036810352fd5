package org.millrace;

import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * A common operation of a group of ranks failed. The exception names the ranks involved. Each subclass stands for one
 * kind of failure. This class itself stands for all other failures: a failure of this rank, or a failure that another
 * rank reported.
 */
public class CommunicatorException extends MillraceException {

    /** Rank number that stands for no rank or an unknown rank. */
    public static final int NO_RANK = -1;

    private static final long serialVersionUID = 1L;

    private final int rank;
    private final int peer;
    private final @Nullable String operation;

    /**
     * Creates an exception.
     *
     * @param message   the failure, its place and a remedy
     * @param rank      the rank that throws this exception
     * @param peer      the peer that the failure concerns; {@link #NO_RANK} if unknown
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

    /** {@return the rank that throws this exception, as numbered in its communicator; {@link #NO_RANK} if unknown} */
    public final int rank() {
        return rank;
    }

    /** {@return the peer that the failure concerns; empty if unknown} */
    public final OptionalInt peer() {
        return peer < 0 ? OptionalInt.empty() : OptionalInt.of(peer);
    }

    /**
     * {@return the text of the operation in progress, for instance
     * {@code "operation 7: all_reduce of 1000 float, sum"}; empty without an operation, or if it is unknown}
     */
    public final Optional<String> operation() {
        return Optional.ofNullable(operation);
    }
}
