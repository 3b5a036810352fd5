package org.millrace.plugin.path;

import java.time.Duration;
import java.util.List;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.plugin.loss.CommunicatorLosses;

/**
 * A way to move the data of connections: by Java's threads or by NCCL's proxy. Both ends of a connection need the same
 * data path, because each data path has its own frame format.
 */
public interface DataPath extends AutoCloseable {

    /** Returns this data path's number. In the handles that peers exchange, the number identifies the data path. */
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
     * Returns the maximum number of buffers of one receive. If the maximum is more than 1, each message has a tag that
     * selects its buffer.
     */
    default int maxRecvs() {
        return 1;
    }

    /** Returns the maximum number of streams of a connection: 1, or more if messages have tags. */
    default int streams() {
        return 1;
    }

    /**
     * Sets the endpoint that future connections of this data path use. The caller closes the endpoint after
     * {@link #stop} and before {@link #close}.
     */
    default void opened(NetEndpoint endpoint) {
        // By default, a data path does not use the endpoint.
    }

    /** Wakes sleeping threads, because an operation is about to be launched. Called by the program's threads. */
    default void operationComing() {
        // By default, a data path has no threads to wake.
    }

    @Override
    String toString();

    /**
     * @param sender sender that the data path uses and closes
     * @param number number of the connection in its communicator
     * @param more   function that connects the further stream with a given number, 1 or more; null if the messages have
     *               no tags
     */
    Connection sending(FrameSender sender, Network network, Owner owner, ConnectionNumber number,
            @Nullable IntFunction<Pending<FrameSender>> more);

    /**
     * @param receiver receiver that the data path uses and closes
     * @param number   number of the connection in its communicator
     * @param more     further streams for messages with tags; the sender connects a stream when it needs the stream
     */
    Connection receiving(FrameReceiver receiver, Network network, Owner owner, ConnectionNumber number,
            List<Pending<FrameReceiver>> more);

    /**
     * Identifies a connection within its communicator. NCCL does not pass the channel to a plugin.
     *
     * @param key   key that both ends share
     * @param order zero-based index among the connections of this direction, in the order of NCCL's requests: by peer,
     *              and for each peer by channel
     */
    record ConnectionNumber(ConnectionKey key, int order) {
    }

    /**
     * Stops the threads of this data path. NCCL has already closed the connections that it made. The endpoint, which is
     * closed next, closes the warm-up's connections.
     */
    default void stop() {
        // By default, a data path has no threads to stop.
    }

    /** Frees the resources of connections. Requires that {@link #stop} was called and that no connection is left. */
    @Override
    void close();

    /**
     * The communicator that a connection belongs to.
     *
     * @param communicator NCCL's hash of the communicator
     * @param drainTimeout time limit for the communicator's connections during teardown
     * @param losses       the communicator's lost connections
     */
    record Owner(long communicator, DrainTimeout drainTimeout, CommunicatorLosses losses) {

        /**
         * Prepares for the connections of the next communicator. In table versions without a context for each
         * communicator, all communicators share one owner. Without this call, the teardown of one communicator would
         * affect the next communicator.
         */
        public void restart() {
            drainTimeout.restart();
            losses.restart();
        }
    }

    /**
     * Time limit for the connections of one communicator during teardown, if peers do not accept the data that the
     * communicator's kernels have posted.
     *
     * <p>
     * NCCL closes connections one after the other and does not report whether the communicator was aborted. After an
     * abort all peers of the communicator are stuck. The time limit therefore applies once to all connections: after
     * one connection has timed out, the other connections do not wait. Until NCCL closes a connection, the connection
     * continues to send the data that its peer accepts.
     */
    final class DrainTimeout {

        private static final Duration TIMEOUT = Duration.ofSeconds(2);

        private volatile boolean over;

        /**
         * Returns a time limit for the next connection that closes. The connection drops its data if it makes no
         * progress for this time. The limit is 0 if any connection of the communicator has already dropped its data.
         */
        public Duration remaining() {
            return over ? Duration.ZERO : TIMEOUT;
        }

        /**
         * Records that a connection dropped its data after the timeout. Returns whether no other connection of the
         * communicator dropped its data before.
         */
        public synchronized boolean expire() {
            boolean first = !over;
            over = true;
            return first;
        }

        /** Restores the full time for the next communicator, see {@link Owner#restart}. */
        public void restart() {
            over = false;
        }
    }

    /**
     * A connection in NCCL's terms: one direction between two ranks. NCCL's service thread registers memory and closes
     * the connection. NCCL's progress thread posts and tests requests, unless the connection is taken over. These two
     * threads never call at the same time.
     */
    interface Connection extends AutoCloseable {

        /** Result of {@link #post} if there is no room for the request. NCCL then repeats the call. */
        int NO_REQUEST = -1;
        /**
         * Returns the address of an {@code ncclNetDeviceHandle_t} that lives as long as this connection, or 0 for none.
         * The caller reads the address once, right after it has created the connection.
         */
        default long deviceHandle() {
            return 0;
        }

        /**
         * Registers memory that will hold payloads. Returns the region's number, 0 to {@code ConnectionHandle.REGIONS
         * - 1}.
         *
         * @param onDevice whether the memory is GPU memory, which requires a path that
         *                 {@link DataPath#takesDeviceMemory accepts} GPU memory
         * @param handle   address at which the caller stores the memory's handle
         */
        int register(long address, long bytes, boolean onDevice, long handle);

        default boolean takesDeviceMemory() {
            return false;
        }

        /** Returns the maximum number of buffers of one {@link #receive}. */
        default int maxRecvs() {
            return 1;
        }

        /**
         * Deregisters memory. When this method returns, no thread accesses the memory any longer, even if transfers
         * were in flight.
         */
        void deregister(int region);

        /**
         * Begins to send or to receive a message.
         *
         * @param address address of the message's first byte, within the region
         * @param bytes   length of a sent message, or maximum length of a received message; a message of 0 bytes needs
         *                no region
         * @param tag     tag of the message, which selects the buffer if a receive has several buffers
         * @return the request's number modulo {@code ConnectionHandle.REQUEST_NUMBERS}, or {@link #NO_REQUEST}
         */
        int post(long address, long bytes, int region, int tag);

        /**
         * Begins to receive one message into each of several buffers. All messages form one request. The address
         * arguments point to C arrays with {@code count} elements each.
         */
        default int receive(long connection, int count, long addresses, long lengths, long tags, long memories) {
            long bytes = NativeMemory.getLong(lengths);
            return post(NativeMemory.getLong(addresses), bytes,
                    ConnectionHandle.regionOf(connection, bytes, NativeMemory.getLong(memories)),
                    NativeMemory.getInt(tags));
        }

        /**
         * Makes progress and returns whether a request is complete. The number of a completed request may be used
         * again.
         *
         * @param sizes address at which this method stores 32-bit numbers for a completed request: the number of sent
         *              bytes, or the number of bytes received into each buffer; 0 if the caller needs no numbers
         */
        boolean test(int request, long sizes);

        @Override
        void close();
    }
}
