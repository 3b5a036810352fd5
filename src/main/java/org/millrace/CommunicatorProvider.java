package org.millrace;

import java.util.Map;
import java.util.Optional;

/** An implementation of {@link Communicator}, found through {@link java.util.ServiceLoader}. */
public interface CommunicatorProvider {

    /**
     * {@return the kind of device that this makes communicators for, as {@code MILLRACE_DEVICE} names it: for instance
     * {@code "host"} or {@code "cuda"}}
     */
    String device();

    /**
     * Whether {@link #join} has a chance on this machine. Must be quick, must not throw, and leaves the process as it
     * is but for libraries that it loads.
     *
     * @param settings settings that override the environment, as in {@link #join}
     * @return empty if it has, else one sentence that says what is missing and what to do
     */
    default Optional<String> whyUnusable(Map<String, String> settings) {
        return Optional.empty();
    }

    /**
     * Joins a group of ranks. Blocks until all ranks have come or the deadline of the configuration has passed.
     *
     * @param rendezvous where the ranks meet: {@code file:PATH}, a file that rank 0 makes and the others can read, or
     *                   {@code tcp:HOST:PORT}, where rank 0 listens
     * @param rank       this rank, 0 to {@code size - 1}
     * @param size       number of ranks
     * @param settings   settings of this communicator that override the environment; names are those of the environment
     *                   variables
     * @param listener   hears of stalls and losses
     * @return this rank's end
     * @throws IllegalArgumentException if the rendezvous, the rank or a setting is not usable
     * @throws MillraceException        if the group did not come together; the message names the ranks that are missing
     */
    Communicator join(String rendezvous, int rank, int size, Map<String, String> settings,
            CommunicatorListener listener);
}
