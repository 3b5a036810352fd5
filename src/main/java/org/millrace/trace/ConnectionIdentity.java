package org.millrace.trace;

/**
 * Which connection a trace is of.
 *
 * @param communicator NCCL's hash of it, or the engine's number
 * @param rank         of this end; -1 if not known
 * @param channel      -1 if not known
 * @param kind         0 of collectives, 1 of sends and receives, {@link #COLLNET}, -1 if not known
 * @param keyHigh      with the other half: what both ends have in common, 0 if there is nothing
 * @param order        zero-based index among the connections of its communicator and direction
 * @param firstStep    where its counters begin
 * @param name         the connection in words
 */
public record ConnectionIdentity(long communicator, int rank, int peer, int channel, Direction direction, int kind,
        long keyHigh, long keyLow, int order, long firstStep, String network, String peerText, String name) {

    /** With a network that reduces: it has no peer. */
    public static final int COLLNET = 2;

    public enum Direction implements Labelled {
        SEND,
        RECEIVE,
        /** From one memory to another, with a proxy between that serves both ends. */
        COPY;
    }
}
