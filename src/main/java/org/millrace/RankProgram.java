package org.millrace;

/**
 * Program of one rank of a group, for {@link Millrace#run} and {@link JoinBuilder#run}.
 *
 * @param <X> type of its checked exceptions
 */
@FunctionalInterface
public interface RankProgram<X extends Exception> {

    /**
     * Runs on the thread that joined.
     *
     * @param communicator this rank's end; the caller closes or aborts it
     * @throws X if this rank cannot continue; the other ranks are notified
     */
    void run(Communicator communicator) throws X;
}
