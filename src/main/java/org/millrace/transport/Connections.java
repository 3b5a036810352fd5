package org.millrace.transport;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Makes one communicator's connections. Both ends must ask for the same connection, each in its own time; none waits
 * for another.
 *
 * <p>
 * A connection is named by channel and index: index 0 is the collectives', index 1 is that of sends and receives, as in
 * NCCL.
 */
public interface Connections extends AutoCloseable {

    /** Index of collectives' connections. */
    int COLLECTIVE = 0;
    /** Index of the connections of sends and receives. */
    int POINT_TO_POINT = 1;

    /**
     * Begins to make the sending end of a connection.
     *
     * @param peer    the rank that receives
     * @param channel number of the channel
     * @param index   {@link #COLLECTIVE} or {@link #POINT_TO_POINT}
     * @return the end in the making
     * @throws org.millrace.MillraceException if the peer cannot be reached
     */
    PendingConnection send(int peer, int channel, int index);

    /**
     * Begins to make the receiving end of a connection.
     *
     * @param peer    the rank that sends
     * @param channel number of the channel
     * @param index   {@link #COLLECTIVE} or {@link #POINT_TO_POINT}
     * @return the end in the making
     */
    PendingConnection receive(int peer, int channel, int index);

    /**
     * Makes memory of the user's ready to be sent from and received into, wherever a transport can.
     *
     * @param memory native memory, which outlives what is returned
     * @return what it is to each peer's connections
     */
    RegisteredMemory register(MemorySegment memory);

    /**
     * All memory of this process, for transports that reach it without its being made ready.
     *
     * @return what any memory is to each peer's connections: null to those of other transports
     */
    RegisteredMemory allMemory();

    /**
     * Which transports were chosen, and why none before them.
     *
     * @return a line for each end that was begun, as in
     *         {@code "rank 0 -> rank 1, channel 0: SHM (P2P: other process 4711)"}
     */
    List<String> describe();

    /**
     * Which transports were not possible.
     *
     * @return each reason once, as in {@code "P2P: other process 4711"}
     */
    List<String> refusals();

    /**
     * Gives up what is still in the making, and frees all connections: their devices and their proxies must have
     * stopped. May be called twice.
     */
    @Override
    void close();
}
