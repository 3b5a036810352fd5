package org.millrace.net.socket;

import java.net.InetAddress;
import java.net.ProtocolFamily;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.TlsIdentity;

/**
 * How a socket network connects and moves frames. The two ends of a connection may differ: streams and threshold are
 * the connecting side's, everything else is each side's own.
 *
 * @param streams            TCP streams of a connection, of each rail if there are several, 1 to 16 in all. One is best
 *                           on one host and on networks that give one flow the whole bandwidth; clouds that limit each
 *                           flow want 2 to 8
 * @param stripeThreshold    the shortest payload that is divided among the streams, bytes, at least 1. A part costs
 *                           each end a call: 64 KiB over four streams took twice the time of one stream over loopback
 * @param sendBufferBytes    {@code SO_SNDBUF} of each stream; 0 lets the system grow it as needed
 * @param receiveBufferBytes {@code SO_RCVBUF} of each stream; 0 lets the system grow it as needed
 * @param framesInFlight     frames whose memory a sender holds on a connection, 1 to 1024
 * @param connectDeadline    within which a connection must be made, from the call of connect
 * @param handshakeDeadline  within which a client of a listener must have said who it is, and its connection must be
 *                           expected
 * @param interfaces         which network interface listeners announce, written as {@code NCCL_SOCKET_IFNAME} is: empty
 *                           chooses
 * @param family             {@code StandardProtocolFamily.INET} or {@code INET6} to use only such addresses; null for
 *                           any
 * @param addresses          the addresses that listeners announce and streams come from, whatever the interfaces:
 *                           several are as many rails. Empty to go by interfaces
 * @param tls                who this process is under TLS; null where data travels in clear
 * @param reconnectDeadline  how long a connection without a stream waits for one to be made again; 0: it is lost then
 */
public record SocketOptions(int streams, int stripeThreshold, int sendBufferBytes, int receiveBufferBytes,
        int framesInFlight, Duration connectDeadline, Duration handshakeDeadline, String interfaces,
        @Nullable ProtocolFamily family, List<InetAddress> addresses, @Nullable TlsIdentity tls,
        Duration reconnectDeadline) {

    public static final int MAX_FRAMES_IN_FLIGHT = 1024;
    /** More streams than any network card or kernel has use for; it bounds what a client can ask of a listener. */
    public static final int MAX_STREAMS = 16;
    /** More network cards than a host has for one job; each has one stream at least. */
    public static final int MAX_RAILS = 8;

    /** Checks the ranges. */
    public SocketOptions {
        require(streams >= 1 && streams <= MAX_STREAMS, "streams", streams, "1 to " + MAX_STREAMS);
        require(stripeThreshold >= 1, "stripeThreshold", stripeThreshold, "1 byte or more");
        require(sendBufferBytes >= 0, "sendBufferBytes", sendBufferBytes, "0 (the system decides) or more");
        require(receiveBufferBytes >= 0, "receiveBufferBytes", receiveBufferBytes, "0 (the system decides) or more");
        require(framesInFlight >= 1 && framesInFlight <= MAX_FRAMES_IN_FLIGHT, "framesInFlight", framesInFlight,
                "1 to " + MAX_FRAMES_IN_FLIGHT);
        require(connectDeadline.isPositive(), "connectDeadline", connectDeadline, "longer than 0");
        require(handshakeDeadline.isPositive(), "handshakeDeadline", handshakeDeadline, "longer than 0");
        require(addresses.size() <= MAX_RAILS, "addresses", addresses, "up to " + MAX_RAILS);
        require(!reconnectDeadline.isNegative(), "reconnectDeadline", reconnectDeadline, "0 or longer");
        addresses = List.copyOf(addresses);
        require(interfaces != null, "interfaces", null, "a list of prefixes, or empty");
    }

    private static void require(boolean holds, String option, Object value, String allowed) {
        if (!holds) {
            throw new IllegalArgumentException("socket option " + option + " is " + value + "; allowed: " + allowed);
        }
    }

    /**
     * What serves most machines: one stream (a threshold of 256 KiB if there are more), buffers as the system grows
     * them, 16 frames in flight, 30 s to connect, 10 s for a handshake, any interface, 60 s to reconnect.
     */
    public static SocketOptions defaults() {
        return new SocketOptions(1, 256 << 10, 0, 0, 16, Duration.ofSeconds(30), Duration.ofSeconds(10), "", null,
                List.of(), null, Duration.ofSeconds(60));
    }

    /** These options with other streams, and the shortest payload that is divided among them. */
    public SocketOptions withStreams(int count, int threshold) {
        return new SocketOptions(count, threshold, sendBufferBytes, receiveBufferBytes, framesInFlight, connectDeadline,
                handshakeDeadline, interfaces, family, addresses, tls, reconnectDeadline);
    }

    /** These options with other buffers; 0 leaves one to the system. */
    public SocketOptions withBuffers(int sendBytes, int receiveBytes) {
        return new SocketOptions(streams, stripeThreshold, sendBytes, receiveBytes, framesInFlight, connectDeadline,
                handshakeDeadline, interfaces, family, addresses, tls, reconnectDeadline);
    }

    public SocketOptions withFramesInFlight(int frames) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, frames, connectDeadline,
                handshakeDeadline, interfaces, family, addresses, tls, reconnectDeadline);
    }

    public SocketOptions withDeadlines(Duration connect, Duration handshake) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, framesInFlight, connect,
                handshake, interfaces, family, addresses, tls, reconnectDeadline);
    }

    /** These options with other interfaces, addresses of one family only if it is given, and perhaps one address. */
    public SocketOptions withAddresses(String names, @Nullable ProtocolFamily only, @Nullable InetAddress exact) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, framesInFlight,
                connectDeadline, handshakeDeadline, names, only, exact == null ? List.of() : List.of(exact), tls,
                reconnectDeadline);
    }

    /** These options with one rail for each of 1 to 8 addresses of this machine. */
    public SocketOptions withRails(List<InetAddress> exact) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, framesInFlight,
                connectDeadline, handshakeDeadline, interfaces, family, exact, tls, reconnectDeadline);
    }

    /** These options with all streams under TLS; null for none. */
    public SocketOptions withTls(@Nullable TlsIdentity identity) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, framesInFlight,
                connectDeadline, handshakeDeadline, interfaces, family, addresses, identity, reconnectDeadline);
    }

    /** These options with another time for a connection to get a stream back. */
    public SocketOptions withReconnectDeadline(Duration deadline) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, framesInFlight,
                connectDeadline, handshakeDeadline, interfaces, family, addresses, tls, deadline);
    }
}
