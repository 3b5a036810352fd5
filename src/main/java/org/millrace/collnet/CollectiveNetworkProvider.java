package org.millrace.collnet;

import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.net.Pending;

/**
 * Makes {@linkplain CollectiveNetwork networks that reduce}. Millrace finds other providers than its own with
 * {@link java.util.ServiceLoader} on the class path. Such a provider needs a public constructor without arguments. A
 * communicator with {@code NCCL_COLLNET_ENABLE=1} uses the first provider that all of its ranks have, in the order of
 * the providers' names.
 */
public interface CollectiveNetworkProvider {

    /** {@return a short name that no other provider has} */
    String name();

    /**
     * {@return whether networks of this provider can reduce elements of a type with an operator} The result is the same
     * on all ranks.
     */
    boolean reduceSupport(DataType type, ReduceOp op);

    /**
     * Opens a listener, to which the other ranks of a network connect. A communicator calls this method once for each
     * of its channels. If the ranks of a host have a leader, the communicator makes a second call for each channel.
     *
     * @param number number that identifies the network: the same on all ranks of the network, and different for each
     *               network
     */
    Place listen(int number);

    /**
     * Listener of this rank for the other ranks' connections. The caller closes it before or together with the network.
     */
    interface Place extends AutoCloseable {

        /** {@return the data that the other ranks need to connect, of the same length on every rank} */
        byte[] handle();

        /**
         * Begins to connect all ranks. Every rank calls this method. The method does not block. The caller polls the
         * pending network, and abandons it if the connection takes too long.
         *
         * @param handles handles of all ranks of the network, ordered by the rank's number in the network
         * @param rank    this rank's number in the network
         * @return the pending network
         */
        Pending<CollectiveNetwork> connect(byte[][] handles, int rank);

        /** Closes the listener. Networks that were made with the listener stay open. */
        @Override
        void close();
    }
}
