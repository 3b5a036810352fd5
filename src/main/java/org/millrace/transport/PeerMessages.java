package org.millrace.transport;

/** Carries what the two ends of a connection tell each other while they are made. Nothing waits. */
public interface PeerMessages {

    /**
     * Sends a message to a rank.
     *
     * @param peer the rank
     * @param tag  which message: none is used twice between two ranks
     * @param data some hundred bytes
     */
    void send(int peer, long tag, byte[] data);

    /**
     * A message that a rank sent to this one.
     *
     * @param peer the rank
     * @param tag  which message
     * @return it, once; null if it has not come
     */
    byte[] receive(int peer, long tag);
}
