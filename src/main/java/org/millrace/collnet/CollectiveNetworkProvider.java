package org.millrace.collnet;

import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Makes {@linkplain CollectiveNetwork networks that reduce}. Others than Millrace's own are found by
 * {@link java.util.ServiceLoader} on the class path, and need a public constructor without arguments: a communicator
 * with {@code NCCL_COLLNET_ENABLE=1} takes the first, by name, that all of its ranks have.
 */
public interface CollectiveNetworkProvider {

    /** {@return a short name that no other provider has} */
    String name();

    /**
     * Opens this rank's place in a network. Called as often as a communicator has channels.
     *
     * @param channel which, from 0 on
     */
    Place listen(int channel);

    /** Where the other ranks find this one. */
    interface Place extends AutoCloseable {

        /** {@return what the other ranks need to know, as long on every rank} */
        byte[] handle();

        /**
         * Connects all ranks; every rank calls it, and it blocks until all are connected.
         *
         * @param handles of all ranks, by rank
         * @param abort   a reason to give up, if there is one; asked again and again
         * @throws org.millrace.MillraceException if they were not connected in time
         */
        CollectiveNetwork connect(byte[][] handles, int rank, Duration deadline,
                Supplier<? extends @Nullable Throwable> abort);

        /** Ends the place; a network that was made of it lives on. */
        @Override
        void close();
    }
}
