package org.millrace.collnet;

import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.net.Pending;

/**
 * Makes {@linkplain CollectiveNetwork networks that reduce}. Others than Millrace's own are found by
 * {@link java.util.ServiceLoader} on the class path, and need a public constructor without arguments: a communicator
 * with {@code NCCL_COLLNET_ENABLE=1} takes the first, by name, that all of its ranks have.
 */
public interface CollectiveNetworkProvider {

    /** {@return a short name that no other provider has} */
    String name();

    /** {@return whether its networks may reduce such elements by such an operator} The same on all ranks. */
    boolean reduceSupport(DataType type, ReduceOp op);

    /**
     * Opens this rank's place in a network. Called as often as a communicator has channels, and once more for each if
     * the ranks of a host have a leader.
     *
     * @param number which network, the same on all of its ranks; different numbers are different networks
     */
    Place listen(int number);

    /** Where the other ranks find this one. Closed when the network is, at the latest. */
    interface Place extends AutoCloseable {

        /** {@return what the other ranks need to know, as long on every rank} */
        byte[] handle();

        /**
         * Begins to connect all ranks; every rank calls it. Nothing waits: its user polls, and gives up when it takes
         * too long.
         *
         * @param handles of all of the network's ranks, by their numbers in it
         * @param rank    this rank's number in it
         * @return the network in the making
         */
        Pending<CollectiveNetwork> connect(byte[][] handles, int rank);

        /** Ends the place; a network that was made of it lives on. */
        @Override
        void close();
    }
}
