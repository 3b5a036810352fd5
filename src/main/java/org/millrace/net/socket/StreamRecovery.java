package org.millrace.net.socket;

import java.io.IOException;
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
import org.millrace.foreign.SystemError;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.connection.ConnectionState;

/**
 * The state of the lost streams at one end of a connection. The thread that moves the connection's frames uses this
 * object to communicate with the {@link Reconnector}. The sending end opens the new streams. The receiving end asks
 * whether the peer still knows the connection. If the peer has not detected the loss, either request informs the peer.
 *
 * <p>
 * A stream has an epoch, which increases with each attempt to restore the stream. The receiver's thread closes the lost
 * stream before it uses the successor, and answers the sender only after this close. Therefore the receiver reads no
 * byte of an older epoch after the sender may send again.
 */
public final class StreamRecovery {

    /** Time in nanoseconds after which a port that refuses connections is assumed to belong to no process. */
    private static final long REFUSED_NANOS = 1_000_000_000;

    /** A replacement for a lost stream, and the first message of the receiving end on the new stream, or null. */
    public record Successor(SocketChannel channel, long epoch, @Nullable ByteBuffer answer) {
    }

    /**
     * Addresses for requests to restore a stream: the remote address of the peer's reconnector, and the local address.
     * The local address is null if the system chooses it.
     */
    record Peer(@Nullable InetAddress local, InetSocketAddress remote) {

        /**
         * Returns the addresses for requests to restore one stream.
         *
         * @param bound whether a new stream must have the same local address
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
    /** Action that the reconnector calls when the state has changed. */
    private final Runnable onNews;
    /**
     * Number of requests so far, if the connection has a single stream. Each request uses the next address of {@code
     * peers}, cyclically.
     */
    private int turn;
    private final AtomicReferenceArray<@Nullable Successor> successors;
    /** Epoch of each stream; for a lost stream, the epoch before the loss. Written by the thread that moves frames. */
    private final AtomicLongArray epochs;
    /**
     * For each stream, the newest epoch that the peer reports as lost. Written by the reconnector, like the elements of
     * {@code tried}.
     */
    private final AtomicLongArray lostThere;
    private final long[] tried;
    /**
     * Whether the reconnector has changed one of the fields above or {@code end} since the last {@link #readNews}. The
     * reconnector writes this field after those fields. Readers read this field before those fields.
     */
    private volatile boolean news;
    /** Reason why no stream will be restored; null while a stream may still be restored. */
    private volatile @Nullable String end;
    /**
     * Whether the reason in {@code end} is that the peer was closed deliberately, see {@link #close}. This field is
     * written before {@code end}, and read after {@code end}.
     */
    private boolean closedThere;
    /** Time since which the connection has no stream, by {@link System#nanoTime}; 0 while it has a stream. */
    private volatile long noneSince;
    private volatile long heard;
    private volatile boolean closed;
    private long refusedSince;

    /**
     * @param id     identity of this end
     * @param secret secret of the reconnector of the peer's process
     * @param peers  for each stream, the address to which requests for the stream are sent
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
     * Creates the state of a stream that belongs to no network, such as a stream of the control plane. Requests to
     * restore the stream use the peer's address and the other addresses in the peer's offer, one after the other.
     *
     * @param accepts whether this end accepts new streams from the peer
     * @param theirs  bytes that {@link Reconnector#offer} returned in the peer's process
     * @throws ProtocolException if the bytes are invalid
     */
    public static StreamRecovery of(Reconnector reconnector, ConnectionKey key, boolean accepts, byte[] theirs,
            SocketChannel stream, Runnable onNews) throws IOException {
        if (theirs.length != Reconnector.OFFER_BYTES) {
            throw new ProtocolException("made an offer of " + theirs.length + " bytes to restore lost streams");
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

    /** Returns the number of addresses that the requests of a stream use cyclically. */
    int ways() {
        return streams == 1 ? peers.length : 1;
    }

    int streams() {
        return streams;
    }

    /** Returns whether a closing sender is still allowed to wait until frames of lost streams are sent again. */
    boolean mayWait() {
        return reconnector.mayWait();
    }

    boolean connects() {
        return !id.receiver();
    }

    boolean isClosed() {
        return closed;
    }

    // The following methods are called by the thread that moves frames.

    /** Returns whether the reconnector has changed the state since the last {@link #readNews}. */
    public boolean hasNews() {
        return news;
    }

    public void readNews() {
        news = false;
    }

    /** Returns the successor of a stream; null without a successor. The caller then owns the successor. */
    @Nullable
    public Successor take(int stream) {
        Successor next = successors.getAndSet(stream, null);
        if (next != null) {
            epochs.set(stream, next.epoch);
            noneSince = 0;
        }
        return next;
    }

    /** Returns whether the peer has reported the loss of the stream's current epoch. */
    public boolean isLostThere(int stream) {
        return lostThere.get(stream) == epochs.get(stream);
    }

    @Nullable
    public String end() {
        return end;
    }

    /**
     * Returns whether the peer's end was closed deliberately, see {@link #close}. Call this method only after
     * {@link #end()} has returned a reason.
     */
    public boolean isClosedThere() {
        return closedThere;
    }

    /**
     * Records that a stream is lost and was closed at this end, and begins to restore it.
     *
     * @param last whether no other stream is open
     */
    public void lost(int stream, boolean last) {
        if (last) {
            noneSince = System.nanoTime() | 1;
        }
        reconnector.lost(this, stream);
    }

    /**
     * Ends the recovery, because the connection is lost or closed. The answer to a later request of the peer states
     * whether the close was deliberate. Only the first call has an effect.
     *
     * @param inOrder whether the connection is closed deliberately, and is not lost. A sender of frames passes true
     *                only if all its frames were acknowledged
     */
    public void close(boolean inOrder) {
        closed = true;
        reconnector.remove(this, inOrder);
        for (int stream = 0; stream < streams; stream++) {
            close(successors.getAndSet(stream, null));
        }
    }

    // The following methods are called by the reconnector.

    /** Returns the epoch of the next attempt to open a stream. */
    long nextEpoch(int stream) {
        tried[stream] = Math.max(tried[stream], epochs.get(stream)) + 1;
        return tried[stream];
    }

    long epoch(int stream) {
        return epochs.get(stream);
    }

    /**
     * Returns whether a message of the peer's process has shown that the peer knows the connection. At the accepting
     * end the result is false at first, because the accepting end answers the hello before such a message arrives.
     */
    boolean isHeard() {
        return heard != 0;
    }

    /** Records that a message of the peer's process has arrived. */
    void heard() {
        heard = System.nanoTime() | 1;
        refusedSince = 0;
    }

    /** Records a restored stream. If a stream has two successors, the older one is closed. */
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

    /** Records the peer's report that it has lost a stream. */
    void lostThere(int stream, long epoch) {
        heard();
        lostThere.set(stream, epoch);
        tell();
    }

    /** Records why no stream will be restored. */
    void end(String why) {
        end(why, false);
    }

    void end(String why, boolean closedInOrder) {
        closedThere = closedInOrder;
        end = why;
        tell();
    }

    /** Records a failed attempt to restore a stream. If no stream is left, the failure may end the connection. */
    void failed(int stream, Exception why) {
        long now = System.nanoTime();
        if (SystemError.isRefusal(why)) {
            refusedSince = refusedSince == 0 ? now | 1 : refusedSince;
            if (noneSince != 0 && peers[stream].isThisHost()) {
                end("its process has ended: no process listens on its port on this host");
            } else if (noneSince != 0 && now - refusedSince > REFUSED_NANOS) {
                end("its process has ended: its host refuses another stream");
            }
        } else {
            refusedSince = 0;
        }
        checkDeadline(now, why.getMessage());
    }

    /**
     * Ends the connection if the reconnect deadline has passed. The time counts from the loss of the last stream, or
     * from the peer's newest message if this message arrived after the loss.
     */
    private void checkDeadline(long now, @Nullable String last) {
        long none = noneSince;
        long since = none != 0 && heard != 0 && heard - none > 0 ? heard : none;
        if (none != 0 && now - since > reconnector.deadline().toNanos()) {
            end("no stream could be restored in " + ValueTypes.DurationType.text(reconnector.deadline())
                    + " (MILLRACE_RECONNECT_DEADLINE); the last attempt: " + last);
        }
    }
}
