package org.millrace.net.socket;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.connection.HandshakeReply.Refused;
import org.millrace.net.connection.HandshakeReply.Unanswered;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.connection.OutgoingConnection;
import org.millrace.net.socket.OutgoingStream.NoRouteException;

/**
 * A pending connection to a listener. If the listener has several addresses, this side first requests the list of them.
 * Then this side opens the streams of all rails at the same time. A rail that cannot be connected is left out if
 * another rail can be connected.
 */
final class SocketConnect extends OutgoingConnection {

    private static final Logger LOG = LogManager.getLogger(SocketConnect.class);

    private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
    private static final long LAST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final SocketOptions options;
    private final List<LocalAddress> locals;
    private final ConnectionKey key;
    private final byte[] secret;
    private final InetSocketAddress listener;
    /** Whether the listener has more than one address. If so, this side first requests the list of addresses. */
    private final boolean hasRails;
    /** Separate stream that requests all addresses of the listener; null while no such request is pending. */
    private @Nullable OutgoingStream query;
    private final @Nullable Reconnector reconnector;
    private final ByteBuffer addresses = ByteBuffer.allocate(AddressFormat.LIST_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private List<RailAddresses> rails = List.of();
    private final List<OutgoingStream> streams = new ArrayList<>();
    /** Data that the listener sends on each stream. The data describes the reconnector of the listener's process. */
    private final List<ByteBuffer> resumes = new ArrayList<>();
    private long attempt;
    private boolean beganAgain;
    /**
     * Failure of the latest attempt that found the host unreachable; null before the first such attempt. The next two
     * fields contain the time of the first failure and the time of the next attempt, by {@link System#nanoTime}.
     */
    private @Nullable NoRouteException noRoute;
    private long noWaySince;
    private long triedAgainAt;
    private long pause = FIRST_PAUSE_NANOS;

    /**
     * @param locals      source addresses for the streams of several rails; empty if the system chooses them
     * @param reconnector object that restores lost streams; null if lost streams are not restored
     */
    public SocketConnect(OpenResources network, SocketOptions options, List<LocalAddress> locals, byte[] address,
            ConnectionKey key, @Nullable Reconnector reconnector) {
        super(network, "socket connection " + key + " to " + OutgoingStream.name(AddressFormat.SOCKET.decode(address)),
                options.connectDeadline(), options.reconnectDeadline());
        this.options = options;
        this.locals = locals;
        this.key = key;
        this.reconnector = reconnector;
        secret = AddressFormat.secret(address);
        listener = reachable(AddressFormat.SOCKET.decode(address));
        hasRails = AddressFormat.rails(address) > 1;
        try {
            begin();
        } catch (ConnectionException e) {
            release();
            throw named(e);
        }
    }

    private ConnectionException named(ConnectionException e) {
        String message = this + ": " + e.getMessage();
        return e instanceof Unanswered ? new Unanswered(message, e) : new ConnectionException(message, e);
    }

    /** Begins to open the streams of the known rails. Without known rails, first requests the listener's addresses. */
    private void begin() {
        if (!rails.isEmpty()) {
            open();
        } else if (hasRails) {
            ByteBuffer question = hello(0, 0, 0, 1).encode(secret, key, reconnector);
            try {
                query = new OutgoingStream(null, listener, StreamHello.FORMAT, question, options);
            } catch (NoRouteException e) {
                awaitRoute(e);
            }
        } else {
            connect(List.of(listener));
        }
    }

    private InetSocketAddress reachable(InetSocketAddress theirs) {
        return Interfaces.reachable(theirs, () -> Interfaces.choose(options).addresses());
    }

    private void connect(List<InetSocketAddress> addresses) {
        // If this host has a single interface, the system chooses the best source address.
        boolean oneToOne = addresses.size() == 1 && locals.size() <= 1;
        rails = new ArrayList<>(RailAddresses.pair(oneToOne ? List.of() : locals, addresses));
        open();
    }

    /** Opens all streams of all rails. The streams of one rail have consecutive numbers. */
    private void open() {
        attempt = new SecureRandom().nextLong();
        int perRail = Math.max(Math.min(options.streams(), SocketOptions.MAX_STREAMS / rails.size()), 1);
        int count = perRail * rails.size();
        for (int stream = 0; stream < count; stream++) {
            RailAddresses rail = rails.get(stream / perRail);
            StreamHello hello = hello(stream, count, stream / perRail, rails.size());
            try {
                streams.add(new OutgoingStream(rail.local(), rail.remote(), StreamHello.FORMAT,
                        hello.encode(secret, key, reconnector), options));
                resumes.add(ByteBuffer.allocate(StreamHello.RESUME_BYTES).order(ByteOrder.LITTLE_ENDIAN));
            } catch (ConnectionException e) {
                leaveOut(rail, e);
                return;
            }
        }
    }

    private StreamHello hello(int stream, int count, int rail, int railCount) {
        return new StreamHello(options.stripeThreshold(), attempt, stream, count, rail, railCount,
                options.framesInFlight());
    }

    /**
     * Starts again without the given rail. If no other rail is left, schedules a later attempt, or throws the given
     * exception. The listener accepts the new attempt as soon as it has detected the close of the old streams.
     */
    private void leaveOut(RailAddresses rail, ConnectionException why) {
        if (rails.size() == 1) {
            awaitRoute(why);
            return;
        }
        beganAgain = true;
        rails.remove(rail);
        LOG.warn("{}: the rail {} is left out, the connection is made over {}: {}", this, rail, rails,
                why.getMessage());
        reopen();
    }

    /**
     * Schedules another attempt if the host is unreachable, because the network may be cut for some time. Throws the
     * given exception if the exception has another reason, or if the reconnect deadline has passed.
     */
    private void awaitRoute(ConnectionException why) {
        long now = System.nanoTime();
        noWaySince = noRoute == null ? now : noWaySince;
        if (!(why instanceof NoRouteException none) || now - noWaySince >= options.reconnectDeadline().toNanos()) {
            throw why;
        }
        if (noRoute == null) {
            LOG.warn("{}: {} This is tried again for {}", this, why.getMessage(), options.reconnectDeadline());
        }
        noRoute = none;
        release();
        // The next attempt begins with all rails, because the same cut may also have made the other rails unreachable.
        rails = List.of();
        triedAgainAt = now + pause;
        pause = Math.min(2 * pause, LAST_PAUSE_NANOS);
    }

    @Override
    protected @Nullable FrameSender advance() {
        try {
            return areAccepted() ? connected() : null;
        } catch (ConnectionException e) {
            throw named(e);
        }
    }

    private boolean areAccepted() {
        if (query == null && streams.isEmpty()) {
            if (noRoute != null && System.nanoTime() - triedAgainAt < 0) {
                return false;
            }
            begin();
        }
        if (query != null) {
            try {
                if (!query.advance() || !query.receive(addresses, "its addresses")) {
                    return false;
                }
            } catch (NoRouteException e) {
                awaitRoute(e);
                return false;
            }
            List<InetSocketAddress> theirs = AddressFormat.decodeList(addresses);
            closeQuery();
            connect(theirs.stream().map(this::reachable).toList());
        }
        boolean all = !streams.isEmpty();
        for (int stream = 0; stream < streams.size(); stream++) {
            try {
                all &= streams.get(stream).advance()
                        && streams.get(stream).receive(resumes.get(stream), "the rest of its answer");
            } catch (ConnectionException e) {
                failed(stream, e);
                return false;
            }
        }
        if (!all && nanosLeft() < options.connectDeadline().toNanos() / 2) {
            leaveOutUnreachable();
        }
        return all;
    }

    private void failed(int stream, ConnectionException why) {
        HandshakeReply reply = why instanceof Refused refused ? refused.reply() : null;
        if (why instanceof Unanswered && mayTryAgain()) {
            beganAgain = true;
            throw why;
        } else if (reply == HandshakeReply.KEY_TAKEN && beganAgain) {
            // The key still belongs to this client's earlier attempt: the listener has not yet detected the close of
            // all streams of that attempt.
            reopen();
        } else if (reply == null || reply == HandshakeReply.WRONG_SECRET) {
            // No process listens at the address, or the listener belongs to another job.
            leaveOut(railOf(stream), why);
        } else {
            throw why;
        }
    }

    private void reopen() {
        closeStreams();
        open();
    }

    private RailAddresses railOf(int stream) {
        return rails.get(stream * rails.size() / streams.size());
    }

    /**
     * Leaves out an unreachable rail after half of the connect deadline, if another rail reaches the listener's host.
     */
    private void leaveOutUnreachable() {
        int unreachable = -1;
        boolean any = false;
        for (int stream = 0; stream < streams.size(); stream++) {
            any |= streams.get(stream).isConnected();
            unreachable = streams.get(stream).isConnected() ? unreachable : stream;
        }
        if (any && unreachable >= 0) {
            leaveOut(railOf(unreachable),
                    new ConnectionException("no answer within half of " + options.connectDeadline()));
        }
    }

    private FrameSender connected() {
        SocketChannel[] channels = streams.stream().map(OutgoingStream::channel).toArray(SocketChannel[]::new);
        String peer = streams.getFirst().process();
        String name = this + ", " + peer;
        Rail[] byStream = new Rail[streams.size()];
        for (int rail = 0, perRail = byStream.length / rails.size(); rail < rails.size(); rail++) {
            Arrays.fill(byStream, rail * perRail, (rail + 1) * perRail, new Rail(rail, rails.get(rail).toString()));
        }
        StreamRecovery recovery = recovery(channels);
        try {
            channels[0].write(HandshakeReply.ACCEPTED.encode(StreamHello.FORMAT));
        } catch (IOException e) {
            if (recovery == null) {
                throw new Unanswered("the listener broke the connection that it had accepted: " + e.getMessage(), e);
            }
            // The stream is lost. The listener's process learns in another way that this client is connected: it asks
            // this process, or receives this process's request for another stream.
        }
        StreamSet set = new StreamSet(network(), name + StreamSet.count(rails.size(), channels.length), peer, channels,
                recovery);
        FrameSender sender = new SocketSender(set, byStream,
                Pieces.over(channels.length, options.stripeThreshold(), options.framesInFlight()), System::nanoTime);
        network().opened(set, sender::close);
        return sender;
    }

    private @Nullable StreamRecovery recovery(SocketChannel[] channels) {
        ByteBuffer first = resumes.getFirst();
        if (reconnector == null || StreamHello.resumePort(first) == 0) {
            return null;
        }
        StreamRecovery.Peer[] peers = new StreamRecovery.Peer[channels.length];
        try {
            for (int i = 0; i < peers.length; i++) {
                peers[i] = StreamRecovery.Peer.of(channels[i], rails.size() > 1, StreamHello.resumePort(first));
            }
        } catch (IOException e) {
            throw new ConnectionException("the listener broke the connection that it had accepted: " + e.getMessage(),
                    e);
        }
        return new StreamRecovery(reconnector, new ResumeFormat.Id(key, attempt, false),
                StreamHello.resumeSecret(first), peers);
    }

    @Override
    protected String waitingFor() {
        if (query == null && streams.isEmpty()) {
            return "a way to the listener's host: " + (noRoute == null ? "" : noRoute.getMessage());
        }
        String what = query != null ? query.isAccepted() ? "the listener's addresses" : query.waitingFor()
                : streams.stream()
                        .filter(stream -> !stream.isAccepted())
                        .map(OutgoingStream::waitingFor)
                        .findFirst()
                        .orElse("the rest of the listener's answer");
        return what + "; is the peer alive and accepting, and does a firewall let it through?";
    }

    @Override
    protected void release() {
        closeQuery();
        closeStreams();
    }

    private void closeQuery() {
        if (query != null) {
            query.close();
            query = null;
            addresses.clear();
        }
    }

    private void closeStreams() {
        streams.forEach(OutgoingStream::close);
        streams.clear();
        resumes.clear();
    }

    /**
     * The two addresses of a rail.
     *
     * @param local  source address of the rail's streams; null if the system chooses it
     * @param remote address of the listener
     */
    record RailAddresses(@Nullable InetAddress local, InetSocketAddress remote) {

        /**
         * Pairs local with remote addresses. The number of rails is the larger of the two numbers of addresses. Remote
         * address i is paired with local address i, and the shorter list is repeated from its beginning. If local
         * address i is in another subnet than remote address i, the next local address in the remote address's subnet
         * is used. If that subnet contains no local address, the next local address of the remote address's family is
         * used.
         *
         * @param locals  local addresses; empty if the system chooses them
         * @param remotes the listener's addresses; at least one
         */
        static List<RailAddresses> pair(List<LocalAddress> locals, List<InetSocketAddress> remotes) {
            List<RailAddresses> rails = new ArrayList<>();
            int count = Math.min(Math.max(locals.size(), remotes.size()), SocketOptions.MAX_RAILS);
            for (int rail = 0; rail < count; rail++) {
                InetSocketAddress remote = remotes.get(rail % remotes.size());
                rails.add(new RailAddresses(localFor(locals, rail, remote.getAddress()), remote));
            }
            return rails;
        }

        private static @Nullable InetAddress localFor(List<LocalAddress> locals, int rail, InetAddress remote) {
            InetAddress sameFamily = null;
            for (int i = 0; i < locals.size(); i++) {
                LocalAddress local = locals.get((rail + i) % locals.size());
                if (local.isFamilyOf(remote)) {
                    if (local.isSubnetOf(remote)) {
                        return local.address();
                    }
                    sameFamily = sameFamily == null ? local.address() : sameFamily;
                }
            }
            return sameFamily;
        }

        @Override
        public String toString() {
            return (local == null ? "" : local.getHostAddress() + " to ") + OutgoingStream.name(remote);
        }
    }
}
