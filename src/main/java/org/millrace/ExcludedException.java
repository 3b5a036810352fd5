package org.millrace;

/**
 * The other ranks continue or may continue without this rank. There are two possible reasons. This rank may have called
 * {@link Communicator#shrink(java.time.Duration)} too late, for instance because a signal had stopped its process. Or
 * the ranks that this rank can reach, including itself, are no majority of the group, and the ranks share no decision
 * place. The process keeps its data and may join another group.
 */
public final class ExcludedException extends CommunicatorException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param message the reason
     * @param rank    the rank that throws this exception, as numbered in the failed group
     */
    public ExcludedException(String message, int rank) {
        super(message, rank, NO_RANK, null, null);
    }
}
