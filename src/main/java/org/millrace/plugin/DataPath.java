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
 * Decides who moves the data of connections. The two ends of a connection have the same path, as its frames are its
 * own.
 */
interface DataPath extends AutoCloseable {

    /** Tells paths apart in the handles that peers exchange. */
    byte id();

    /** Whether kernels gather what they receive from pages. */
    default boolean unpacks() {
        return false;
    }

    /** Whether Java moves the data, and NCCL's own proxy does not. */
    default boolean takesOver() {
        return false;
    }

    /** Whether slots may be in the memory of GPUs. */
    default boolean takesDeviceMemory() {
        return false;
    }

    /** The most buffers of one receive. With more than one, messages have tags that tell them apart. */
    default int maxRecvs() {
        return 1;
    }

    /** How many streams a connection may have: one, and for messages with tags some more. */
    default int streams() {
        return 1;
    }

    /** Connections will be made by this endpoint, which is closed between {@link #stop} and {@link #close}. */
    default void opened(NetEndpoint endpoint) {
        // most need nothing
    }

    /** An operation is about to be launched: what sleeps may wake up. Called by the program's threads. */
    default void operationComing() {
        // only threads of our own sleep
    }

    @Override
    String toString();

    /**
     * Takes over the sending end of a connection that was just made.
     *
     * @param sender the path's to use and to close
     * @param number which of the communicator's it is
     * @param more   connects a further stream, 1 or more, if the receiving side takes messages by their tags; null if
     *               it takes them as they come
     */
    Connection sending(FrameSender sender, Network network, Owner owner, ConnectionNumber number,
            @Nullable IntFunction<Pending<FrameSender>> more);

    /**
     * Takes over the receiving end of a connection that was just made.
     *
     * @param receiver the path's to use and to close
     * @param number   which of the communicator's it is
     * @param more     further streams, which the sending side connects when it needs them: likewise
     */
    Connection receiving(FrameReceiver receiver, Network network, Owner owner, ConnectionNumber number,
            List<Pending<FrameReceiver>> more);

    /**
     * Which of a communicator's connections one is: NCCL does not tell a plugin the channel.
     *
     * @param key   what both ends have in common
     * @param order zero-based index among the connections of this direction, in NCCL's order of request: peer after
     *              peer, each peer's in the order of channels
     */
    record ConnectionNumber(ConnectionKey key, int order) {
    }

    /** Ends what the path runs. NCCL has closed its connections; the endpoint closes what else there is. */
    default void stop() {
        // most run nothing
    }

    /** Gives back what connections used; {@link #stop} was called, and none is left. */
    @Override
    void close();

    /**
     * The communicator that a connection is part of.
     *
     * @param communicator NCCL's hash of it
     * @param drainTimeout how long its connections wait while it is torn down
     * @param losses       which of them were lost
     */
    record Owner(long communicator, DrainTimeout drainTimeout, CommunicatorLosses losses) {

        /**
         * Connections are being made: whatever was torn down before was another communicator, of a table version that
         * has no context for each.
         */
        void restart() {
            drainTimeout.restart();
            losses.restart();
        }
    }

    /**
     * How long the connections of one communicator wait, while it is torn down, for peers that take nothing of what its
     * kernels have posted.
     *
     * <p>
     * NCCL ends connections one after the other and does not say whether the communicator was aborted. If it was, all
     * its peers are stuck; so all its connections together wait once: the first that gives up tells the others not to
     * wait. What the peers still take meanwhile is sent all the same, as every connection goes on until it is ended
     * itself.
     */
    final class DrainTimeout {

        private static final Duration TIMEOUT = Duration.ofSeconds(2);

        private volatile boolean over;

        /** For the next connection: how long nothing may move before it is given up. */
        public Duration remaining() {
            return over ? Duration.ZERO : TIMEOUT;
        }

        /** A connection was given up; returns whether it was the first. */
        public synchronized boolean expire() {
            boolean first = !over;
            over = true;
            return first;
        }

        /** For the next communicator: see {@link Owner#restart}. */
        public void restart() {
            over = false;
        }
    }

    /**
     * One direction between two ranks, as NCCL sees it. NCCL's service thread registers memory and closes; its progress
     * thread, if it makes progress at all, posts and tests. The two never call at once.
     */
    interface Connection extends AutoCloseable {

        /** What {@link #post} returns if there is no room: NCCL tries again. */
        int NO_REQUEST = -1;
        /**
         * The address of an {@code ncclNetDeviceHandle_t} that lives as long as this connection, or 0 for none. Read
         * once, right after the connection was made.
         */
        default long deviceHandle() {
            return 0;
        }

        /**
         * Takes memory in that payloads will lie in; returns the region's number, 0 to {@code ConnectionHandle.REGIONS
         * - 1}.
         *
         * @param onDevice whether it is a GPU's, which only a path has that {@link DataPath#takesDeviceMemory takes} it
         */
        int register(long address, long bytes, boolean onDevice);

        default boolean takesDeviceMemory() {
            return false;
        }

        /** The most buffers of one {@link #receive}. */
        default int maxRecvs() {
            return 1;
        }

        /** Forgets memory: when this returns nobody touches it any more, whatever was still under way. */
        void deregister(int region);

        /**
         * Begins to send a message, or to receive one.
         *
         * @param address of the message's first byte, within the region
         * @param bytes   its length, or how long it may be; 0 needs no region
         * @param tag     tells a sent message's receiver which of its buffers it is for, if it has several
         * @return the request's number modulo {@code ConnectionHandle.REQUEST_NUMBERS}, or {@link #NO_REQUEST}
         */
        int post(long address, long bytes, int region, int tag);

        /**
         * Begins to receive a message into each of some buffers: one request for all. The arguments are C's arrays, of
         * so many elements each.
         */
        default int receive(long connection, int count, long addresses, long lengths, long tags, long memories) {
            long bytes = NativeMemory.getLong(lengths);
            return post(NativeMemory.getLong(addresses), bytes,
                    ConnectionHandle.regionOf(connection, bytes, NativeMemory.getLong(memories)),
                    NativeMemory.getInt(tags));
        }

        /**
         * Makes progress, and looks whether a request is done. The number of a request that is done is free again.
         *
         * @param sizes where the bytes sent, or received into each buffer, go as 32-bit numbers if the request is done;
         *              0 for nowhere
         */
        boolean test(int request, long sizes);

        @Override
        void close();
    }
}
