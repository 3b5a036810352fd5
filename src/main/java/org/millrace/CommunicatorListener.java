package org.millrace;

/**
 * Receives stalls and losses, also while the program makes no calls: {@link JoinBuilder#onStall},
 * {@link JoinBuilder#onLoss}. A method that is not overridden prints to standard error. Each event causes one call, on
 * its own thread. A call may therefore take time, and may abort the communicator.
 */
public interface CommunicatorListener {

    /** Prints everything. */
    CommunicatorListener STANDARD_ERROR = new CommunicatorListener() {};

    /**
     * An operation stalls because a rank has not joined it. It continues when that rank joins.
     *
     * @param what the operation, the missing rank, the time so far and the deadline
     */
    default void stalled(String what) {
        System.err.println("millrace: " + what);
    }

    /**
     * A rank is lost, and the communicator has failed. Operations in progress and later calls throw the same exception.
     *
     * @param loss the lost rank, and how the loss was detected
     */
    default void lost(PeerLostException loss) {
        String rank = "rank " + loss.rank();
        String what = String.valueOf(loss.getMessage());
        System.err.println("millrace: " + (what.startsWith(rank) ? what : rank + ": " + what));
    }
}
