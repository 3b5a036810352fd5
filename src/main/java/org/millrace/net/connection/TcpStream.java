package org.millrace.net.connection;

import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;

/**
 * For how long nothing has come on a stream that should have. A kernel whose peer's host is reached receives a segment
 * every few seconds, whatever the two processes do:
 *
 * <ul>
 * <li>nothing is under way: an answer to its own keep-alive, or the peer's keep-alive;
 * <li>what was sent is under way: an acknowledgement;
 * <li>the peer's process does not read, and has no room: this side's probes of the window come ever more rarely, up to
 * every two minutes, and keep-alives are not sent beside them; but the peer, which has nothing under way, sends its
 * own.
 * </ul>
 *
 * So a stream is silent if the kernel's count of segments that came does not grow, or if, though it grows, what this
 * side has sent, or asked, gets no answer: the other way is silent alone. {@code TCP_USER_TIMEOUT} would end the
 * connection of a peer that does not read, from Linux 5.11 on.
 */
public final class TcpStream {

    /** Two keep-alive probes have had no answer by then. */
    private static final long SILENT_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Something comes every five seconds, and streams that one fault silences count as silent within six seconds of
     * each other: when the first does, nothing has come on the others for longer than this.
     */
    private static final long HEARD_NANOS = TimeUnit.SECONDS.toNanos(4);

    /** As long as the kernel takes, where nothing is under way: see {@link TcpStreams#keepAlive}. */
    private static final long LOST_NANOS = TimeUnit.SECONDS.toNanos(14);

    private final SocketChannel channel;
    final InetSocketAddress local;
    final InetSocketAddress remote;
    final String peer;
    final boolean carriesFrames;
    /** -1 while it is not known. Of the thread that looks, as is what follows. */
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

    /** Takes what the kernel says of it; of the time since the last look, what may count. */
    void update(TcpInfo info, long nanos) {
        if (info.segmentsIn() != segments || segments == 0) { // 0: a kernel that does not count
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
     * Whether the stream has been silent for so long that it is given up. With bytes under way the kernel itself sends
     * them again and again, for a quarter of an hour. Safe from any thread.
     */
    public boolean isLost() {
        return lost;
    }

    /**
     * Whether something has come of late. What is sent on another stream, and gets no answer, keeps the kernel from
     * finding its end, as it probes idle streams alone. Safe from any thread.
     */
    public boolean isHeard() {
        return heard;
    }

    /** For how long nothing has come that should have: 0 unless something should. */
    long silentNanos() {
        return Math.max(unheardNanos, Math.max(unansweredNanos, askedNanos));
    }
}
