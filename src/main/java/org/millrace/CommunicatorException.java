package org.millrace;

import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * What a group of ranks did together has failed, and who has a part in it. Its subclasses say what kind of failure that
 * is; one that is of none of these kinds is a failure of this rank's, or of another one's that told of it.
 */
public class CommunicatorException extends MillraceException {

    /** In place of a rank: there is none, or it is not known. */
    public static final int NOBODY = -1;

    private static final long serialVersionUID = 1L;

    private final int rank;
    private final int peer;
    private final @Nullable String operation;

    /**
     * A failure.
     *
     * @param message   what failed, where, and what to do
     * @param rank      the rank that throws it
     * @param peer      the other rank that has a part in it; {@link #NOBODY} if none is known
     * @param operation what was being done, for people; null if it was no operation
     * @param cause     why; null if there is nothing more to know
     */
    public CommunicatorException(String message, int rank, int peer, @Nullable String operation,
            @Nullable Throwable cause) {
        super(message, cause);
        this.rank = rank;
        this.peer = peer;
        this.operation = operation;
    }

    /** {@return the rank that throws it, as its communicator counts; {@link #NOBODY} if it is not known} */
    public final int rank() {
        return rank;
    }

    /** {@return the other rank that has a part in it; empty if none is known} */
    public final OptionalInt peer() {
        return peer < 0 ? OptionalInt.empty() : OptionalInt.of(peer);
    }

    /**
     * {@return what was being done, for people, as in {@code "operation 7: all_reduce of 1000 float, sum"}; empty if it
     * was no operation, or is not known}
     */
    public final Optional<String> operation() {
        return Optional.ofNullable(operation);
    }

    @Override
    public final CommunicatorException again(String text) {
        return copy(text, operation);
    }

    /**
     * The same failure as that of an operation.
     *
     * @param text what it says now
     * @param what the operation, unless one is known already
     * @return to be thrown
     */
    public final CommunicatorException during(String text, String what) {
        return copy(text, operation == null ? what : operation);
    }

    /**
     * Another one of the same kind, with this one's {@link #origin} as its cause.
     *
     * @param text what it says
     * @param what its operation
     * @return to be thrown
     */
    protected CommunicatorException copy(String text, @Nullable String what) {
        return new CommunicatorException(text, rank, peer, what, origin());
    }

    /** {@return {@link #peer()} as a number, {@link #NOBODY} if none is known} */
    protected final int peerOrNobody() {
        return peer;
    }
}
