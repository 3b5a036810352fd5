package org.millrace;

/**
 * Hears what a program should know even while it calls nothing: {@link JoinBuilder#onStall},
 * {@link JoinBuilder#onLoss}. What is not overridden goes to standard error. Each call comes once for what it tells of,
 * from a thread of its own, so that it may take its time, and abort the communicator.
 */
public interface CommunicatorListener {

    /** Prints everything. */
    CommunicatorListener STANDARD_ERROR = new CommunicatorListener() {};

    /**
     * An operation stands still, as a rank has not come to it. It goes on when that rank comes.
     *
     * @param what the operation, who is missing, for how long, and how long it is waited for
     */
    default void stalled(String what) {
        System.err.println("millrace: " + what);
    }

    /**
     * A rank is lost, and the communicator has failed: operations under way, and later calls, throw this too.
     *
     * @param loss which rank, and how it is known
     */
    default void lost(PeerLostException loss) {
        String rank = "rank " + loss.rank();
        String what = String.valueOf(loss.getMessage());
        System.err.println("millrace: " + (what.startsWith(rank) ? what : rank + ": " + what));
    }
}
