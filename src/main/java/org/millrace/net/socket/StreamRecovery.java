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
 * One end of a connection, with the state of its lost streams. The thread that moves its frames and the
 * {@link Reconnector} communicate through it. The sending end connects. The receiving end asks whether the peer still
 * knows the connection. This also tells the peer about a stream whose loss only this end has detected.
 *
 * <p>
 * A stream has an epoch, which grows with each attempt to restore it. The receiver's thread takes a successor after it
 * has closed the predecessor, and answers only then. No byte of an older epoch is read after the sender may send again.
 */
public final class StreamRecovery {

    /** Time in nanoseconds after which a refused port counts as a port without a process. */
    private static final long REFUSED_NANOS = 1_000_000_000;

    /** A stream that replaces a lost one, with the receiving end's first message on it. */
    public record Successor(SocketChannel channel, long epoch, @Nullable ByteBuffer answer) {
    }

    /** Address at which the peer's process is asked for a stream. */
    record Peer(@Nullable InetAddress local, InetSocketAddress remote) {

        /**
         * Returns the peer of a stream.
         *
         * @param bound whether new streams use the same local address
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
    /** Called by the reconnector when news is available. */
    private final Runnable onNews;
    /** For a single stream: index of the peer's next address. */
    private int turn;
    private final AtomicReferenceArray<@Nullable Successor> successors;
    /** By stream: the epoch in use, or the last one. Written by the thread that moves frames. */
    private final AtomicLongArray epochs;
    /** By stream: the last epoch that the peer reports as lost. Written by the reconnector, like {@code tried}. */
    private final AtomicLongArray lostThere;
    private final long[] tried;
    /**
     * Whether a field above, or {@code end}, has changed. It is written after that change, and read before these
     * fields.
     */
    private volatile boolean news;
    /** Reason why no stream will be restored; null while one may be. */
    private volatile @Nullable String end;
    /** Whether the reason is the peer's orderly close; written before {@code end}, and read after it. */
    private boolean closedThere;
    /** Time since which no stream is left, by {@link System#nanoTime}; 0 while one is left. */
    private volatile long noneSince;
    private volatile long heard;
    private volatile boolean closed;
    private long refusedSince;

    /**
     * Creates the state of a connection with all its streams.
     *
     * @param id     identity of this end
     * @param secret secret by which the peer's process is known
     * @param peers  peers by stream
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
     * Creates the state of a stream outside a network. Its peer is asked at its address, and at others in turn.
     *
     * @param accepts whether the peer connects
     * @param theirs  the peer's {@link Reconnector#offer}
     * @throws ProtocolException if the bytes are invalid
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

    /** Returns the address for the next request of a stream. */
    Peer peer(int stream) {
        return streams == 1 ? peers[turn++ % peers.length] : peers[stream];
    }

    /** Returns the number of addresses that take turns. */
    int ways() {
        return streams == 1 ? peers.length : 1;
    }

    int streams() {
        return streams;
    }

    /** Returns whether a closed sender may still wait for a stream. */
    boolean mayWait() {
        return reconnector.mayWait();
    }

    /** Returns whether this end opens streams. */
    boolean connects() {
        return !id.receiver();
    }

    boolean isClosed() {
        return closed;
    }

    // The thread that moves frames

    /** Returns whether something has changed since the last {@link #readNews}. */
    public boolean hasNews() {
        return news;
    }

    public void readNews() {
        news = false;
    }

    /** Returns a stream's successor, and passes its ownership to the caller; null without one. */
    @Nullable
    public Successor take(int stream) {
        Successor next = successors.getAndSet(stream, null);
        if (next != null) {
            epochs.set(stream, next.epoch);
            noneSince = 0;
        }
        return next;
    }

    /** Returns whether the peer has lost the stream in its current epoch. */
    public boolean isLostThere(int stream) {
        return lostThere.get(stream) == epochs.get(stream);
    }

    @Nullable
    public String end() {
        return end;
    }

    /** Returns whether the peer was closed in order. Valid only after {@link #end()} has returned a reason. */
    public boolean isClosedThere() {
        return closedThere;
    }

    /**
     * Records that a stream is lost, and closed here.
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
     * Gives the connection up, or ends it in order. The peer learns it if it asks. Only the first call has an effect.
     *
     * @param inOrder whether it is closed in order, without unacknowledged data
     */
    public void close(boolean inOrder) {
        closed = true;
        reconnector.remove(this, inOrder);
        for (int stream = 0; stream < streams; stream++) {
            close(successors.getAndSet(stream, null));
        }
    }

    // The reconnector

    /** Returns the epoch of the next attempt to open a stream. */
    long nextEpoch(int stream) {
        tried[stream] = Math.max(tried[stream], epochs.get(stream)) + 1;
        return tried[stream];
    }

    long epoch(int stream) {
        return epochs.get(stream);
    }

    /** Returns whether the peer is known to have the connection: the accepting end answers first. */
    boolean isHeard() {
        return heard != 0;
    }

    /** Records a message from the peer's host and process. */
    void heard() {
        heard = System.nanoTime() | 1;
        refusedSince = 0;
    }

    /** Records a restored stream. Older ones are closed. */
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

    /** Records that the peer has lost a stream. */
    void lostThere(int stream, long epoch) {
        heard();
        lostThere.set(stream, epoch);
        tell();
    }

    /** Records that no stream will be restored. */
    void end(String why) {
        end(why, false);
    }

    void end(String why, boolean closedInOrder) {
        closedThere = closedInOrder;
        end = why;
        tell();
    }

    /** Records a failed attempt. It may end the connection if no stream is left. */
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

    /** Ends the connection if the deadline has passed since the last stream, and since the last message of the peer. */
    private void checkDeadline(long now, @Nullable String last) {
        long none = noneSince;
        long since = none != 0 && heard != 0 && heard - none > 0 ? heard : none;
        if (none != 0 && now - since > reconnector.deadline().toNanos()) {
            end("no stream could be made again in " + ValueTypes.DurationType.text(reconnector.deadline())
                    + " (MILLRACE_RECONNECT_DEADLINE); the last attempt: " + last);
        }
    }
}
