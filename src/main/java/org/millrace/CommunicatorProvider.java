package org.millrace;

import java.util.Map;
import java.util.Optional;

/** An implementation of {@link Communicator}, found through {@link java.util.ServiceLoader}. */
public interface CommunicatorProvider {

    /**
     * {@return the value of {@code MILLRACE_DEVICE} that selects this provider, for instance {@code "host"} or
     * {@code "cuda"}}
     */
    String device();

    /**
     * Checks whether {@link #join} can succeed on this machine. An implementation must be fast and must not throw. It
     * may load libraries, but changes nothing else in the process.
     *
     * @param settings settings that override the environment, as in {@link #join}
     * @return empty if a join can succeed; otherwise one sentence with the missing requirement and the remedy
     */
    default Optional<String> whyUnusable(Map<String, String> settings) {
        return Optional.empty();
    }

    /**
     * Joins a group of ranks. Blocks until all ranks have joined or the configured deadline has passed.
     *
     * @param rendezvous meeting place of the ranks: {@code file:PATH}, a file that rank 0 creates and the others can
     *                   read, or {@code tcp:HOST:PORT}, an address at which rank 0 listens
     * @param rank       this rank, 0 to {@code size - 1}
     * @param size       number of ranks
     * @param settings   settings of this communicator that override the environment, by the names of the environment
     *                   variables
     * @param listener   receives reports of stalls and losses
     * @return this rank's communicator
     * @throws IllegalArgumentException if the rendezvous, the rank or a setting is not usable
     * @throws MillraceException        if the group was not completed; the message names the missing ranks
     */
    Communicator join(String rendezvous, int rank, int size, Map<String, String> settings,
            CommunicatorListener listener);
}
