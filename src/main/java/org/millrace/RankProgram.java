package org.millrace;

/**
 * Program of one rank of a group, for {@link Millrace#run} and {@link JoinBuilder#run}.
 *
 * @param <X> type of the program's checked exceptions
 */
@FunctionalInterface
public interface RankProgram<X extends Exception> {

    /**
     * Runs the program of a rank, on the thread that joined the group.
     *
     * @param communicator this rank's communicator; the caller of this method closes or aborts it
     * @throws X if this rank cannot continue; the other ranks are notified
     */
    void run(Communicator communicator) throws X;
}
