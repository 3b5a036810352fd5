package org.millrace.proxy;

/**
 * Which connection a message is about.
 *
 * @param self this end, for instance {@code "rank 1"}
 * @param peer the other end
 * @param text the connection, seen from this end
 */
public record ConnectionName(String self, String peer, String text) {

    /**
     * {@return the name of a connection of a ring, where ranks are known: for instance {@code "rank 1 <- rank 0,
     * channel 0"}}
     *
     * @param rank    the rank whose proxy this is
     * @param peer    the rank at the other end
     * @param channel number of the channel
     * @param sends   whether this end sends
     */
    public static ConnectionName ofRing(int rank, int peer, int channel, boolean sends) {
        String self = "rank " + rank;
        String other = "rank " + peer;
        return new ConnectionName(self, other, self + (sends ? " -> " : " <- ") + other + ", channel " + channel);
    }

    /**
     * {@return a name for a connection of which only the network's end is known}
     *
     * @param text what the network calls it
     */
    public static ConnectionName of(String text) {
        return new ConnectionName("this end", "the peer", text);
    }

    @Override
    public String toString() {
        return text;
    }
}
