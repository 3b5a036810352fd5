package org.millrace;

/**
 * What one rank of a group does, for {@link Millrace#run} and {@link JoinBuilder#run}.
 *
 * @param <X> the checked exceptions that it throws
 */
@FunctionalInterface
public interface RankProgram<X extends Exception> {

    /**
     * Runs on the thread that joined.
     *
     * @param communicator this rank's end; closed or aborted by who called this
     * @throws X if this rank cannot go on: the other ranks are told
     */
    void run(Communicator communicator) throws X;
}
