package org.millrace.net.socket;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;
import org.millrace.config.ValueTypes;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.connection.ConnectionState;

/**
 * One end of a connection, as far as its lost streams are made again: what the thread that moves its frames and the
 * {@link Reconnector} tell each other. The sending end connects. The receiving end asks whether the other still knows
 * the connection, and so tells it of a stream that only this end has seen to be lost.
 *
 * <p>
 * A stream has an epoch, which grows with each attempt to make it. The receiver's thread takes a successor when it has
 * closed what was before, and answers only then: so no byte of an older epoch is read once the sender may send again.
 */
public final class StreamRecovery {

    /** A port that a host refuses for so long has no process behind it. */
    private static final long REFUSED_NANOS = 1_000_000_000;

    /** A stream that takes a lost one's place, with what the receiving end is to say on it first. */
    public record Successor(SocketChannel channel, long epoch, @Nullable ByteBuffer answer) {
    }

    /** Where a stream of the other end's process is asked for. */
    record Peer(@Nullable InetAddress local, InetSocketAddress remote) {

        /**
         * The other end of a stream.
         *
         * @param bound whether streams there come from the same address here
         */
        static Peer of(SocketChannel stream, boolean bound, int port) throws IOException {
            InetSocketAddress there = (InetSocketAddress) stream.getRemoteAddress();
            InetSocketAddress here = (InetSocketAddress) stream.getLocalAddress();
            return new Peer(bound ? here.getAddress() : null, new InetSocketAddress(there.getAddress(), port));
        }

        private boolean isThisHost() {
            InetAddress there = remote.getAddress();
            try {
                return there.isLoopbackAddress() || NetworkInterface.getByInetAddress(there) != null;
            } catch (IOException unknown) {
                return false;
            }
        }
    }

    private final Reconnector reconnector;
    private final ResumeFormat.Id id;
    private final byte[] secret;
    private final Peer[] peers;
    private final int streams;
    /** Called when there is news, by the reconnector. */
    private final Runnable onNews;
    /** Of a single stream: which of its peer's addresses is next. */
    private int turn;
    private final AtomicReferenceArray<@Nullable Successor> successors;
    /** By stream: that which is in use, or was last. Written by the thread that moves frames. */
    private final AtomicLongArray epochs;
    /** By stream: the last that the other end says it has lost. Written by the reconnector, as {@code tried} is. */
    private final AtomicLongArray lostThere;
    private final long[] tried;
    /** There is something of what is above to be looked at: written after it, read before it. */
    private volatile boolean news;
    /** Why no stream will be made again; null while one may. */
    private volatile @Nullable String end;
    /** Whether that is because the other end was closed in order; written before it. */
    private boolean closedThere;
    /** By {@link System#nanoTime}: since when no stream was left; 0 while one is. */
    private volatile long noneSince;
    private volatile long heard;
    private volatile boolean closed;
    private long refusedSince;

    /**
     * A connection with all its streams.
     *
     * @param id     with which end this is
     * @param secret what the other end's process knows its own by
     * @param peers  by stream
     */
    StreamRecovery(Reconnector reconnector, ResumeFormat.Id id, byte[] secret, Peer[] peers) {
        this(reconnector, id, secret, peers, peers.length, () -> {});
    }

    private StreamRecovery(Reconnector reconnector, ResumeFormat.Id id, byte[] secret, Peer[] peers, int streams,
            Runnable onNews) {
        this.streams = streams;
        this.onNews = onNews;
        this.reconnector = reconnector;
        this.id = id;
        this.secret = secret;
        this.peers = peers;
        successors = new AtomicReferenceArray<>(streams);
        epochs = new AtomicLongArray(streams);
        lostThere = new AtomicLongArray(streams);
        tried = new long[streams];
        for (int stream = 0; stream < streams; stream++) {
            lostThere.set(stream, -1);
        }
        reconnector.add(this);
    }

    /**
     * A stream of no network's, whose peer is asked at its address, and at others in turn.
     *
     * @param accepts whether the other end connects
     * @param theirs  the other end's {@link Reconnector#offer}
     * @throws ProtocolException if it is none
     */
    public static StreamRecovery of(Reconnector reconnector, ConnectionKey key, boolean accepts, byte[] theirs,
            SocketChannel stream, Runnable onNews) throws IOException {
        if (theirs.length != Reconnector.OFFER_BYTES) {
            throw new ProtocolException("made an offer of " + theirs.length + " bytes to make lost streams again");
        }
        ByteBuffer bytes = ByteBuffer.wrap(theirs).order(ByteOrder.LITTLE_ENDIAN);
        Set<Peer> peers = new LinkedHashSet<>();
        peers.add(Peer.of(stream, false, StreamHello.resumePort(bytes)));
        ByteBuffer list = bytes.slice(StreamHello.RESUME_BYTES, AddressFormat.LIST_BYTES).order(bytes.order());
        try {
            if (list.getInt(0) != 0) {
                AddressFormat.decodeList(list).forEach(address -> peers.add(new Peer(null, address)));
            }
        } catch (ConnectionException e) {
            throw new ProtocolException(e.getMessage());
        }
        StreamRecovery made = new StreamRecovery(reconnector, new ResumeFormat.Id(key, 0, accepts),
                StreamHello.resumeSecret(bytes), peers.toArray(Peer[]::new), 1, onNews);
        made.heard();
        return made;
    }

    ResumeFormat.Id id() {
        return id;
    }

    byte[] secret() {
        return secret;
    }

    /** Where a stream is asked for next. */
    Peer peer(int stream) {
        return streams == 1 ? peers[turn++ % peers.length] : peers[stream];
    }

    /** How many addresses take turns. */
    int ways() {
        return streams == 1 ? peers.length : 1;
    }

    int streams() {
        return streams;
    }

    /** Whether a sender that is closed may still wait for a stream. */
    boolean mayWait() {
        return reconnector.mayWait();
    }

    /** Whether this end makes streams. */
    boolean connects() {
        return !id.receiver();
    }

    boolean isClosed() {
        return closed;
    }

    // The thread that moves frames

    /** Whether there is something to look at since the last {@link #readNews}. */
    public boolean hasNews() {
        return news;
    }

    public void readNews() {
        news = false;
    }

    /** A stream's successor, which is this end's from now on; null if there is none. */
    @Nullable
    public Successor take(int stream) {
        Successor next = successors.getAndSet(stream, null);
        if (next != null) {
            epochs.set(stream, next.epoch);
            noneSince = 0;
        }
        return next;
    }

    /** Whether the other end has lost the stream as it is now. */
    public boolean isLostThere(int stream) {
        return lostThere.get(stream) == epochs.get(stream);
    }

    @Nullable
    public String end() {
        return end;
    }

    /** Whether the other end was closed in order; {@link #end} has told the end. */
    public boolean isClosedThere() {
        return closedThere;
    }

    /**
     * A stream is lost, and closed here.
     *
     * @param last whether it was the last
     */
    public void lost(int stream, boolean last) {
        if (last) {
            noneSince = System.nanoTime() | 1;
        }
        reconnector.lost(this, stream);
    }

    /**
     * Gives the connection up, or ends it: the other end learns so if it asks. The first call counts.
     *
     * @param inOrder whether it is closed on purpose, and owes nothing
     */
    public void close(boolean inOrder) {
        closed = true;
        reconnector.remove(this, inOrder);
        for (int stream = 0; stream < streams; stream++) {
            close(successors.getAndSet(stream, null));
        }
    }

    // The reconnector

    /** The epoch of the next attempt to make a stream. */
    long nextEpoch(int stream) {
        tried[stream] = Math.max(tried[stream], epochs.get(stream)) + 1;
        return tried[stream];
    }

    long epoch(int stream) {
        return epochs.get(stream);
    }

    /** Whether the other end is known to have the connection: that which accepts it answers first. */
    boolean isHeard() {
        return heard != 0;
    }

    /** The other end's host and process were heard. */
    void heard() {
        heard = System.nanoTime() | 1;
        refusedSince = 0;
    }

    /** There is a stream again; older ones are closed. */
    void made(int stream, Successor next) {
        heard();
        Successor before = successors.get(stream);
        if (closed || next.epoch <= epochs.get(stream) || before != null && next.epoch <= before.epoch) {
            close(next);
            return;
        }
        close(successors.getAndSet(stream, next));
        tell();
        if (closed) {
            close(successors.getAndSet(stream, null));
        }
    }

    private static void close(@Nullable Successor unused) {
        if (unused != null) {
            ConnectionState.closeQuietly(unused.channel);
        }
    }

    private void tell() {
        news = true;
        onNews.run();
    }

    /** The other end says that it has lost a stream. */
    void lostThere(int stream, long epoch) {
        heard();
        lostThere.set(stream, epoch);
        tell();
    }

    /** There will be no stream any more. */
    void end(String why) {
        end(why, false);
    }

    void end(String why, boolean closedInOrder) {
        closedThere = closedInOrder;
        end = why;
        tell();
    }

    /** An attempt has failed: that may end all, if no stream is left. */
    void failed(int stream, Exception why) {
        long now = System.nanoTime();
        if (why instanceof ConnectException && "Connection refused".equals(why.getMessage())) {
            refusedSince = refusedSince == 0 ? now | 1 : refusedSince;
            if (noneSince != 0 && peers[stream].isThisHost()) {
                end("its process has ended: nobody listens on its port on this host");
            } else if (noneSince != 0 && now - refusedSince > REFUSED_NANOS) {
                end("its process has ended: its host refuses another stream");
            }
        } else {
            refusedSince = 0;
        }
        checkDeadline(now, why.getMessage());
    }

    /** Ends all if the deadline has passed since there was a stream, and since the other end was heard. */
    private void checkDeadline(long now, @Nullable String last) {
        long none = noneSince;
        long since = none != 0 && heard != 0 && heard - none > 0 ? heard : none;
        if (none != 0 && now - since > reconnector.deadline().toNanos()) {
            end("no stream could be made again in " + ValueTypes.DurationType.text(reconnector.deadline())
                    + " (MILLRACE_RECONNECT_DEADLINE); the last attempt: " + last);
        }
    }
}
