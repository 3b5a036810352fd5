package org.millrace.collnet;

import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.net.Pending;

/**
 * Makes {@linkplain CollectiveNetwork networks that reduce}. Providers other than Millrace's own are found by
 * {@link java.util.ServiceLoader} on the class path, and need a public constructor without arguments. A communicator
 * with {@code NCCL_COLLNET_ENABLE=1} uses the first provider, by name, that all of its ranks have.
 */
public interface CollectiveNetworkProvider {

    /** {@return a short name that no other provider has} */
    String name();

    /** {@return whether its networks can reduce elements of this type by this operator} The same on all ranks. */
    boolean reduceSupport(DataType type, ReduceOp op);

    /**
     * Opens this rank's listening place in a network. Called once for each channel of a communicator, and once more for
     * each channel if the ranks of a host have a leader.
     *
     * @param number number of the network, the same on all of its ranks; each number is a separate network
     */
    Place listen(int number);

    /** The listening place that the other ranks connect to. It is closed no later than the network. */
    interface Place extends AutoCloseable {

        /** {@return the data that the other ranks need to connect, of the same length on every rank} */
        byte[] handle();

        /**
         * Begins to connect all ranks; every rank calls it. The method does not block. The caller polls, and gives up
         * if it takes too long.
         *
         * @param handles handles of all of the network's ranks, by their number in the network
         * @param rank    this rank's number in the network
         * @return the pending network
         */
        Pending<CollectiveNetwork> connect(byte[][] handles, int rank);

        /** Closes the listening place. A network that was made from it stays open. */
        @Override
        void close();
    }
}
