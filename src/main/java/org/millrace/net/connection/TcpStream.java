package org.millrace.net.connection;

import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;

/**
 * Measures the silence of a stream on which input is expected. While this host reaches the peer's host, it receives a
 * segment of the stream every few seconds, independent of the two processes:
 *
 * <ul>
 * <li>If nothing is in flight, this host receives an answer to its own keep-alive, or the peer's keep-alive.
 * <li>If data is in flight, this host receives an acknowledgement.
 * <li>If the peer's process does not read and has no room for data, this host sends window probes instead of
 * keep-alives. The interval between two probes grows to two minutes. The peer's host has nothing in flight and sends
 * its own keep-alives.
 * </ul>
 *
 * A stream is therefore silent if the operating system's count of received segments does not grow. A stream is also
 * silent if the count grows, but this side's data or probes receive no answer. In that case only the direction to the
 * peer is interrupted. The socket option {@code TCP_USER_TIMEOUT} is not used, because from Linux 5.11 on it would
 * close the connection to a peer that does not read.
 */
public final class TcpStream {

    /** Duration after which a stream is silent. Two keep-alive probes have had no answer by then. */
    private static final long SILENT_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Duration without input after which {@link #isHeard} returns false. Normally input arrives every five seconds. If
     * one fault interrupts several streams, they become silent within six seconds of each other. The first of these
     * streams becomes silent after ten seconds. At that time, all other streams have received nothing for at least four
     * seconds.
     */
    private static final long HEARD_NANOS = TimeUnit.SECONDS.toNanos(4);

    /**
     * Duration of the silence after which a stream is lost. The operating system reports an idle stream as lost after
     * the same time ({@link TcpStreams#keepAlive}).
     */
    private static final long LOST_NANOS = TimeUnit.SECONDS.toNanos(14);

    private final SocketChannel channel;
    final InetSocketAddress local;
    final InetSocketAddress remote;
    final String peer;
    final boolean carriesFrames;
    /**
     * Descriptor of the stream; -1 while unknown. Only the watching thread uses this field and the following fields.
     */
    int descriptor = -1;
    private int segments;
    private long answers;
    private long unheardNanos;
    private long unansweredNanos;
    private long askedNanos;
    int roundTripMicros;
    private volatile boolean lost;
    private volatile boolean heard = true;

    TcpStream(SocketChannel channel, InetSocketAddress local, InetSocketAddress remote, String peer,
            boolean carriesFrames) {
        this.carriesFrames = carriesFrames;
        this.channel = channel;
        this.local = local;
        this.remote = remote;
        this.peer = peer;
    }

    boolean isOpen() {
        return channel.isOpen();
    }

    /**
     * Processes the operating system's TCP statistics of this stream. Adds {@code nanos} to the silence of the stream
     * if no segment has arrived since the last call, or if sent data is retransmitted without an answer. {@code nanos}
     * is at most the time since the last call, see {@link SilenceClock}.
     */
    void update(TcpInfo info, long nanos) {
        // The count of received segments is 0 if the operating system does not count them.
        if (info.segmentsIn() != segments || segments == 0) {
            segments = info.segmentsIn();
            unheardNanos = 0;
        } else {
            unheardNanos += nanos;
        }
        roundTripMicros = info.leastRoundTripMicros();
        unansweredNanos = info.sendsAgain() && info.answers() == answers ? unansweredNanos + nanos : 0;
        answers = info.answers();
        askedNanos = info.askedNanos();
        lost |= silentNanos() >= LOST_NANOS;
        heard = silentNanos() < HEARD_NANOS;
    }

    boolean isSilent() {
        return silentNanos() >= SILENT_NANOS;
    }

    /**
     * Returns whether the stream has been silent for so long that its owner gives it up. The operating system itself
     * would retransmit data in flight for a quarter of an hour. Safe from any thread.
     */
    public boolean isLost() {
        return lost;
    }

    /**
     * Returns whether this stream was silent for less than four seconds at the latest check. Safe from any thread. An
     * owner of several streams to one peer reports silent links only on streams for which the result is true. A report
     * on a silent stream would remain unacknowledged. The operating system probes only streams without unacknowledged
     * data, so it would not detect the loss of the silent stream.
     */
    public boolean isHeard() {
        return heard;
    }

    /**
     * Returns the duration of the silence, in nanoseconds: the time for which expected input has been missing. The
     * duration is 0 if no input is missing.
     */
    long silentNanos() {
        return Math.max(unheardNanos, Math.max(unansweredNanos, askedNanos));
    }
}
