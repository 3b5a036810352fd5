package org.millrace.trace;

/**
 * Identity of a traced connection.
 *
 * @param communicator NCCL's hash of the communicator, or the engine's number of the communicator
 * @param rank         rank of this end; -1 if unknown
 * @param channel      number of the channel; -1 if unknown
 * @param kind         0 for collectives, 1 for sends and receives, {@link #COLLNET}, -1 if unknown
 * @param keyHigh      first half of the key that both ends share; both halves are 0 without a key
 * @param order        zero-based index of the connection among the connections of its communicator and direction
 * @param firstStep    initial value of the connection's counters
 * @param name         description of the connection
 */
public record ConnectionIdentity(long communicator, int rank, int peer, int channel, Direction direction, int kind,
        long keyHigh, long keyLow, int order, long firstStep, String network, String peerText, String name) {

    /** Kind of a connection with a network that computes reductions. Such a connection has no peer. */
    public static final int COLLNET = 2;

    public enum Direction implements Labelled {
        SEND,
        RECEIVE,
        /** The proxy copies from one device's memory to another device's memory, and serves both ends. */
        COPY;
    }
}
