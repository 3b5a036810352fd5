package org.millrace.net.socket;

import java.net.InetAddress;
import java.net.ProtocolFamily;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.TlsIdentity;

/**
 * Options of a socket network for connecting and moving frames. The two ends of a connection may have different
 * options. The connecting side determines the number of streams and the stripe threshold of a connection. All other
 * options of a side apply to that side only.
 *
 * @param streams            number of TCP streams of a connection, 1 to 16. If the connection has several rails, this
 *                           is the number of streams of each rail. The number is reduced if the connection would have
 *                           more than 16 streams. One stream is best on one host, and on networks that give a single
 *                           flow the whole bandwidth. Clouds that limit each flow need 2 to 8 streams
 * @param stripeThreshold    minimum length in bytes of a payload that is divided among the streams; at least 1. Each
 *                           piece costs each end a system call: over loopback, 64 KiB took twice as long over four
 *                           streams as over one stream
 * @param sendBufferBytes    {@code SO_SNDBUF} of each stream; 0 lets the system adjust the size
 * @param receiveBufferBytes {@code SO_RCVBUF} of each stream; 0 lets the system adjust the size
 * @param framesInFlight     maximum number of frames that a connection's sender has accepted and not completed, 1 to
 *                           1024. The owner must not change the memory of these frames
 * @param connectDeadline    time limit for establishing a connection, from the call of connect
 * @param handshakeDeadline  time within which a listener's client must identify itself, and the listener must expect
 *                           the client's connection
 * @param interfaces         network interfaces whose addresses listeners announce; empty for an automatic choice. The
 *                           form is the same as in {@code NCCL_SOCKET_IFNAME}
 * @param family             {@code StandardProtocolFamily.INET} or {@code INET6} to use only addresses of this family;
 *                           null for both
 * @param addresses          addresses that listeners announce, and that streams use as source addresses. Each address
 *                           is a rail. If the list is empty, the interfaces are used instead
 * @param tls                identity of this process under TLS; null without encryption
 * @param reconnectDeadline  time that a connection without a stream waits for a restored stream; with 0 the connection
 *                           is lost immediately
 */
public record SocketOptions(int streams, int stripeThreshold, int sendBufferBytes, int receiveBufferBytes,
        int framesInFlight, Duration connectDeadline, Duration handshakeDeadline, String interfaces,
        @Nullable ProtocolFamily family, List<InetAddress> addresses, @Nullable TlsIdentity tls,
        Duration reconnectDeadline) {

    public static final int MAX_FRAMES_IN_FLIGHT = 1024;
    /**
     * Maximum number of streams of a connection. No network card or operating system needs more. The maximum also
     * limits the number of streams that a listener keeps for one client.
     */
    public static final int MAX_STREAMS = 16;
    /** Maximum number of rails. No host has more network cards for one job. Each rail has at least one stream. */
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
     * Returns options for most machines: one stream, buffers that the system adjusts, 16 frames in flight, and any
     * interface. With more streams, payloads from 256 KiB on are striped. The deadlines are 30 s to connect, 10 s for a
     * handshake, and 60 s to reconnect.
     */
    public static SocketOptions defaults() {
        return new SocketOptions(1, 256 << 10, 0, 0, 16, Duration.ofSeconds(30), Duration.ofSeconds(10), "", null,
                List.of(), null, Duration.ofSeconds(60));
    }

    public SocketOptions withStreams(int count, int threshold) {
        return new SocketOptions(count, threshold, sendBufferBytes, receiveBufferBytes, framesInFlight, connectDeadline,
                handshakeDeadline, interfaces, family, addresses, tls, reconnectDeadline);
    }

    public SocketOptions withDeadlines(Duration connect, Duration handshake) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, framesInFlight, connect,
                handshake, interfaces, family, addresses, tls, reconnectDeadline);
    }

    /**
     * Returns these options with other interfaces, another address family (null for both families) and another address.
     * A null address means an empty list of addresses.
     */
    public SocketOptions withAddresses(String names, @Nullable ProtocolFamily only, @Nullable InetAddress exact) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, framesInFlight,
                connectDeadline, handshakeDeadline, names, only, exact == null ? List.of() : List.of(exact), tls,
                reconnectDeadline);
    }

    /** Returns these options with 1 to 8 addresses of this machine. Each address is a rail. */
    public SocketOptions withRails(List<InetAddress> exact) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, framesInFlight,
                connectDeadline, handshakeDeadline, interfaces, family, exact, tls, reconnectDeadline);
    }

    /** Returns these options with TLS for all streams. If the identity is null, the streams are not encrypted. */
    public SocketOptions withTls(@Nullable TlsIdentity identity) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, framesInFlight,
                connectDeadline, handshakeDeadline, interfaces, family, addresses, identity, reconnectDeadline);
    }

    /** Returns these options with another {@code reconnectDeadline}, which may be 0. */
    public SocketOptions withReconnectDeadline(Duration deadline) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, framesInFlight,
                connectDeadline, handshakeDeadline, interfaces, family, addresses, tls, deadline);
    }
}
