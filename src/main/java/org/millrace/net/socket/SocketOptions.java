package org.millrace.net.socket;

import java.net.InetAddress;
import java.net.ProtocolFamily;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.TlsIdentity;

/**
 * Options of a socket network for connecting and moving frames. The two ends of a connection may differ. The connecting
 * side chooses streams and threshold; each side chooses everything else for itself.
 *
 * @param streams            number of TCP streams of a connection, or of each rail if there are several, 1 to 16 in
 *                           all. One is best on one host and on networks that give one flow the whole bandwidth. Clouds
 *                           that limit each flow need 2 to 8
 * @param stripeThreshold    minimum length of a payload that is divided among the streams, in bytes, at least 1. A part
 *                           costs each end a call: 64 KiB over four streams took twice the time of one stream over
 *                           loopback
 * @param sendBufferBytes    {@code SO_SNDBUF} of each stream; 0 lets the system adjust it
 * @param receiveBufferBytes {@code SO_RCVBUF} of each stream; 0 lets the system adjust it
 * @param framesInFlight     maximum number of frames that hold memory at a connection's sender, 1 to 1024
 * @param connectDeadline    time limit for a connection, from the call of connect
 * @param handshakeDeadline  time limit for a listener's client to identify itself, and for its connection to be
 *                           expected
 * @param interfaces         network interfaces that listeners announce, in the form of {@code NCCL_SOCKET_IFNAME};
 *                           empty for an automatic choice
 * @param family             {@code StandardProtocolFamily.INET} or {@code INET6} to use only such addresses; null for
 *                           any
 * @param addresses          addresses that listeners announce and streams use as source, instead of the interfaces;
 *                           each is a rail. Empty to use the interfaces
 * @param tls                identity of this process under TLS; null without encryption
 * @param reconnectDeadline  time that a connection without a stream waits for a restored one; 0 loses it at once
 */
public record SocketOptions(int streams, int stripeThreshold, int sendBufferBytes, int receiveBufferBytes,
        int framesInFlight, Duration connectDeadline, Duration handshakeDeadline, String interfaces,
        @Nullable ProtocolFamily family, List<InetAddress> addresses, @Nullable TlsIdentity tls,
        Duration reconnectDeadline) {

    public static final int MAX_FRAMES_IN_FLIGHT = 1024;
    /**
     * Maximum number of streams: more than any network card or kernel needs. It limits a client's requests to a
     * listener.
     */
    public static final int MAX_STREAMS = 16;
    /** Maximum number of rails: more network cards than a host has for one job. Each rail has at least one stream. */
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
     * Returns options for most machines: one stream (a threshold of 256 KiB with more) and buffers adjusted by the
     * system. 16 frames are in flight, on any interface. The deadlines are 30 s to connect, 10 s for a handshake, and
     * 60 s to reconnect.
     */
    public static SocketOptions defaults() {
        return new SocketOptions(1, 256 << 10, 0, 0, 16, Duration.ofSeconds(30), Duration.ofSeconds(10), "", null,
                List.of(), null, Duration.ofSeconds(60));
    }

    /** Returns these options with another number of streams, and another threshold. */
    public SocketOptions withStreams(int count, int threshold) {
        return new SocketOptions(count, threshold, sendBufferBytes, receiveBufferBytes, framesInFlight, connectDeadline,
                handshakeDeadline, interfaces, family, addresses, tls, reconnectDeadline);
    }

    /** Returns these options with other buffer sizes; 0 leaves a size to the system. */
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

    /**
     * Returns these options with other interfaces, with one address family if it is given, and with one address if it
     * is given.
     */
    public SocketOptions withAddresses(String names, @Nullable ProtocolFamily only, @Nullable InetAddress exact) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, framesInFlight,
                connectDeadline, handshakeDeadline, names, only, exact == null ? List.of() : List.of(exact), tls,
                reconnectDeadline);
    }

    /** Returns these options with one rail for each of 1 to 8 addresses of this machine. */
    public SocketOptions withRails(List<InetAddress> exact) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, framesInFlight,
                connectDeadline, handshakeDeadline, interfaces, family, exact, tls, reconnectDeadline);
    }

    /** Returns these options with all streams under TLS; null for no encryption. */
    public SocketOptions withTls(@Nullable TlsIdentity identity) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, framesInFlight,
                connectDeadline, handshakeDeadline, interfaces, family, addresses, identity, reconnectDeadline);
    }

    /** Returns these options with another deadline for a restored stream. */
    public SocketOptions withReconnectDeadline(Duration deadline) {
        return new SocketOptions(streams, stripeThreshold, sendBufferBytes, receiveBufferBytes, framesInFlight,
                connectDeadline, handshakeDeadline, interfaces, family, addresses, tls, deadline);
    }
}
