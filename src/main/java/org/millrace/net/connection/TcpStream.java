package org.millrace.net.connection;

import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;

/**
 * Measures the silence of a stream that should carry something. A kernel that reaches the peer's host receives a
 * segment every few seconds, independent of the two processes:
 *
 * <ul>
 * <li>If nothing is in flight, it receives an answer to its own keep-alive, or the peer's keep-alive.
 * <li>If data is in flight, it receives an acknowledgement.
 * <li>If the peer's process does not read and has no room, this side's window probes become rarer, up to every two
 * minutes, and the kernel sends no keep-alives beside them. The peer has nothing in flight and sends its own
 * keep-alives.
 * </ul>
 *
 * A stream is therefore silent if the kernel's count of received segments does not grow. It is also silent if the count
 * grows, but this side's data or probes receive no answer: then only the other direction is silent. From Linux 5.11 on,
 * {@code TCP_USER_TIMEOUT} would end the connection of a peer that does not read.
 */
public final class TcpStream {

    /** Two keep-alive probes have had no answer after this time. */
    private static final long SILENT_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Time without input after which a stream is not heard. Something arrives every five seconds. Streams silenced by
     * one fault count as silent within six seconds of each other. When the first does, the others have received nothing
     * for longer than this.
     */
    private static final long HEARD_NANOS = TimeUnit.SECONDS.toNanos(4);

    /** The time that the kernel needs without data in flight: see {@link TcpStreams#keepAlive}. */
    private static final long LOST_NANOS = TimeUnit.SECONDS.toNanos(14);

    private final SocketChannel channel;
    final InetSocketAddress local;
    final InetSocketAddress remote;
    final String peer;
    final boolean carriesFrames;
    /** -1 while unknown. This field and the following ones belong to the thread that looks. */
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

    /** Processes the kernel's information. {@code nanos} is the part of the time since the last look that counts. */
    void update(TcpInfo info, long nanos) {
        if (info.segmentsIn() != segments || segments == 0) { // 0 means that the kernel does not count
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
     * Returns whether the stream has been silent for so long that it is given up. The kernel itself retransmits data in
     * flight for a quarter of an hour. Safe from any thread.
     */
    public boolean isLost() {
        return lost;
    }

    /**
     * Returns whether something has arrived recently. Unanswered data on another stream keeps the kernel from detecting
     * that stream's end, because it probes only idle streams. Safe from any thread.
     */
    public boolean isHeard() {
        return heard;
    }

    /**
     * Returns the duration of the silence in nanoseconds: expected input has been missing for this time. 0 if no input
     * is expected.
     */
    long silentNanos() {
        return Math.max(unheardNanos, Math.max(unansweredNanos, askedNanos));
    }
}
