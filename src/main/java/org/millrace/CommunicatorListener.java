package org.millrace;

/**
 * Receives reports of stalled operations and lost ranks, also while the program makes no calls. Programs set a listener
 * by {@link JoinBuilder#onStall} and {@link JoinBuilder#onLoss}. A method that is not overridden prints the report to
 * standard error. Each event causes one call, on a separate thread. The called method may therefore block, and may
 * abort the communicator.
 */
public interface CommunicatorListener {

    /** Listener that prints all reports. */
    CommunicatorListener STANDARD_ERROR = new CommunicatorListener() {};

    /**
     * Reports an operation that stalls because a rank has not joined it. The operation continues when that rank joins.
     *
     * @param what text with the operation, the missing rank, the time so far and the deadline
     */
    default void stalled(String what) {
        System.err.println("millrace: " + what);
    }

    /**
     * Reports that a rank is lost and the communicator has failed. Operations in progress and later calls throw an
     * exception for this loss.
     *
     * @param loss exception with the lost rank and with the means of detection
     */
    default void lost(PeerLostException loss) {
        String rank = "rank " + loss.rank();
        String what = String.valueOf(loss.getMessage());
        System.err.println("millrace: " + (what.startsWith(rank) ? what : rank + ": " + what));
    }
}
