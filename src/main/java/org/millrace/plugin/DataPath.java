package org.millrace.plugin;

import java.time.Duration;
import java.util.List;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Network;
import org.millrace.net.Pending;

/**
 * Moves the data of connections, by Java's threads or NCCL's proxy. Both ends of a connection need the same path,
 * because each path has its own frames.
 */
interface DataPath extends AutoCloseable {

    /** Returns a number that distinguishes paths in the handles that peers exchange. */
    byte id();

    /** Returns whether kernels gather their received data from pages. */
    default boolean unpacks() {
        return false;
    }

    /** Returns whether Java moves the data in place of NCCL's own proxy. */
    default boolean takesOver() {
        return false;
    }

    /** Returns whether slots may be in GPU memory. */
    default boolean takesDeviceMemory() {
        return false;
    }

    /**
     * Returns the maximum number of buffers of one receive. With more than one, messages have tags that distinguish
     * them.
     */
    default int maxRecvs() {
        return 1;
    }

    /** Returns the maximum number of streams of a connection. It is 1, or more for messages with tags. */
    default int streams() {
        return 1;
    }

    /** Announces the endpoint of future connections. It is closed between {@link #stop} and {@link #close}. */
    default void opened(NetEndpoint endpoint) {
        // no action by default
    }

    /** Wakes sleeping threads, because an operation is about to be launched. Called by the program's threads. */
    default void operationComing() {
        // no action by default: only threads of Millrace sleep
    }

    @Override
    String toString();

    /**
     * Creates the sending end of a new connection.
     *
     * @param sender sender that the path uses and closes
     * @param number number of the connection in its communicator
     * @param more   connects a further stream, number 1 or more, if the receiver takes messages by their tags; null if
     *               it takes them in order
     */
    Connection sending(FrameSender sender, Network network, Owner owner, ConnectionNumber number,
            @Nullable IntFunction<Pending<FrameSender>> more);

    /**
     * Creates the receiving end of a new connection.
     *
     * @param receiver receiver that the path uses and closes
     * @param number   number of the connection in its communicator
     * @param more     further streams, if messages have tags. The sending side connects them when it needs them
     */
    Connection receiving(FrameReceiver receiver, Network network, Owner owner, ConnectionNumber number,
            List<Pending<FrameReceiver>> more);

    /**
     * Identifies a connection among those in its communicator. NCCL does not tell a plugin the channel.
     *
     * @param key   key that both ends share
     * @param order zero-based index among the connections of this direction, in NCCL's order of request: by peer, and
     *              for each peer by channel
     */
    record ConnectionNumber(ConnectionKey key, int order) {
    }

    /** Stops the path's threads. NCCL has closed its connections, and the endpoint closes the rest. */
    default void stop() {
        // no threads by default
    }

    /** Frees the resources of connections. {@link #stop} was called, and no connection is left. */
    @Override
    void close();

    /**
     * The communicator of a connection.
     *
     * @param communicator NCCL's hash of the communicator
     * @param drainTimeout time limit for its connections during teardown
     * @param losses       its lost connections
     */
    record Owner(long communicator, DrainTimeout drainTimeout, CommunicatorLosses losses) {

        /**
         * Starts again for new connections. Earlier teardowns belonged to another communicator, in a table version
         * without a context for each communicator.
         */
        void restart() {
            drainTimeout.restart();
            losses.restart();
        }
    }

    /**
     * Time limit for the connections of one communicator during teardown, if peers do not take the data that its
     * kernels have posted.
     *
     * <p>
     * NCCL closes connections one after the other and does not report whether the communicator was aborted. After an
     * abort all its peers are stuck. All its connections together therefore wait once. The first connection that gives
     * up tells the others not to wait. Data that peers still accept meanwhile is sent nevertheless, because every
     * connection continues until it is closed itself.
     */
    final class DrainTimeout {

        private static final Duration TIMEOUT = Duration.ofSeconds(2);

        private volatile boolean over;

        /** Returns the time without progress after which the next connection is given up. */
        public Duration remaining() {
            return over ? Duration.ZERO : TIMEOUT;
        }

        /** Records that a connection was given up. Returns whether it was the first. */
        public synchronized boolean expire() {
            boolean first = !over;
            over = true;
            return first;
        }

        /** Starts again for the next communicator, see {@link Owner#restart}. */
        public void restart() {
            over = false;
        }
    }

    /**
     * One direction between two ranks, in NCCL's terms. NCCL's service thread registers memory and closes the
     * connection. NCCL's progress thread, if it makes progress at all, posts and tests. The two never call at the same
     * time.
     */
    interface Connection extends AutoCloseable {

        /** Result of {@link #post} if there is no room. NCCL tries again. */
        int NO_REQUEST = -1;
        /**
         * Returns the address of an {@code ncclNetDeviceHandle_t} that lives as long as this connection, or 0 for none.
         * Read once, right after the connection was made.
         */
        default long deviceHandle() {
            return 0;
        }

        /**
         * Registers memory that will hold payloads. Returns the region's number, 0 to
         * {@code ConnectionHandle.REGIONS - 1}.
         *
         * @param onDevice whether it is GPU memory, which requires a path that {@link DataPath#takesDeviceMemory
         *                 accepts} it
         */
        int register(long address, long bytes, boolean onDevice);

        default boolean takesDeviceMemory() {
            return false;
        }

        /** Returns the maximum number of buffers of one {@link #receive}. */
        default int maxRecvs() {
            return 1;
        }

        /**
         * Deregisters memory. When it returns, no thread accesses the memory any longer, even if transfers were in
         * flight.
         */
        void deregister(int region);

        /**
         * Begins to send or to receive a message.
         *
         * @param address address of the message's first byte, within the region
         * @param bytes   length of a sent message, or maximum length of a received one; 0 needs no region
         * @param tag     tag that selects a buffer of a receiver with several
         * @return the request's number modulo {@code ConnectionHandle.REQUEST_NUMBERS}, or {@link #NO_REQUEST}
         */
        int post(long address, long bytes, int region, int tag);

        /**
         * Begins to receive a message into each of some buffers, as one request. The arguments are C arrays with
         * {@code count} elements each.
         */
        default int receive(long connection, int count, long addresses, long lengths, long tags, long memories) {
            long bytes = NativeMemory.getLong(lengths);
            return post(NativeMemory.getLong(addresses), bytes,
                    ConnectionHandle.regionOf(connection, bytes, NativeMemory.getLong(memories)),
                    NativeMemory.getInt(tags));
        }

        /**
         * Makes progress and returns whether a request is complete. The number of a completed request is free again.
         *
         * @param sizes address for the number of bytes sent, or received into each buffer, as 32-bit numbers, written
         *              on completion; 0 for none
         */
        boolean test(int request, long sizes);

        @Override
        void close();
    }
}
