package org.millrace.proxy.spi;

/**
 * The name of a connection in messages.
 *
 * @param self name of this end, for instance {@code "rank 1"}
 * @param peer name of the peer's end, for instance {@code "rank 0"}
 * @param text name of the connection
 */
public record ConnectionName(String self, String peer, String text) {

    private static final String RANK = "rank ";

    /**
     * {@return the name of a connection between two known ranks, for instance {@code "rank 1 <- rank 0, channel 0"}}
     *
     * @param sends whether this end sends
     */
    public static ConnectionName ofRing(int rank, int peer, int channel, boolean sends) {
        String self = RANK + rank;
        String other = RANK + peer;
        return new ConnectionName(self, other, self + (sends ? " -> " : " <- ") + other + ", channel " + channel);
    }

    /**
     * {@return the name of a connection between unknown ranks}
     *
     * @param text description of the network's sender or receiver
     */
    public static ConnectionName of(String text) {
        return new ConnectionName("this end", "the peer", text);
    }

    /** {@return the rank of the peer; -1 if the ranks are not known} */
    public int peerRank() {
        return rank(peer);
    }

    /** {@return the rank of this end; -1 if the ranks are not known} */
    public int selfRank() {
        return rank(self);
    }

    private static int rank(String end) {
        return end.matches(RANK + "\\d{1,9}") ? Integer.parseInt(end, RANK.length(), end.length(), 10) : -1;
    }

    @Override
    public String toString() {
        return text;
    }
}
