package org.millrace.trace;

import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.stream.Stream;

/**
 * A port that a process listens on.
 *
 * @param host address to which the port is bound; {@code *} for all addresses of the host
 */
public record ListeningPort(String host, int port, Purpose purpose) {

    public enum Purpose implements Labelled {
        /** Rank 0 waits here for the other ranks of its group. */
        RENDEZVOUS,
        /** Peers connect here to send data. */
        CONNECTIONS,
        /** Peers restore lost streams of their connections here. */
        LOST_STREAMS,
        /** Peers request handles of the network plugin {@code MILLRACE_NET=plugin:PATH} here. */
        PLUGIN
    }

    /** Creates a port from the address to which a server is bound. */
    public static ListeningPort of(InetSocketAddress bound, Purpose purpose) {
        return new ListeningPort(bound.getAddress().isAnyLocalAddress() ? "*" : bound.getAddress().getHostAddress(),
                bound.getPort(), purpose);
    }

    /** Returns the line that a trace stores. */
    String line() {
        return host + ' ' + port + ' ' + purpose.label() + '\n';
    }

    /** Returns the port in a line; none if the line is incomplete, or if a later release has written the line. */
    static Stream<ListeningPort> parse(String line) {
        String[] words = line.split(" ");
        return words.length != 3 || !words[1].matches("\\d{1,5}") ? Stream.of()
                : Arrays.stream(Purpose.values())
                        .filter(each -> each.label().equals(words[2]))
                        .map(each -> new ListeningPort(words[0], Integer.parseInt(words[1]), each));
    }

    /** Returns "10.0.0.1 port 41234 (connections)". */
    @Override
    public String toString() {
        return host + " port " + port + " (" + purpose.label().replace('_', ' ') + ")";
    }
}
