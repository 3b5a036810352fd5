package org.millrace.bootstrap;

import java.io.IOException;
import java.net.ProtocolException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.bootstrap.Acceptor.AcceptedConnection.Stage;
import org.millrace.bootstrap.Acceptor.AcceptedConnection;
import org.millrace.bootstrap.Message.Challenge;
import org.millrace.bootstrap.Message.Hello;
import org.millrace.bootstrap.Message.OtherVersion;
import org.millrace.bootstrap.Message.Proof;
import org.millrace.bootstrap.Message.Rejected;
import org.millrace.bootstrap.Rendezvous.BootstrapListener;
import org.millrace.net.connection.Admission;

/**
 * Accepts connections for rank 0 and decides on the admission of each client. A client that does not belong to the
 * group receives the reason for its refusal, and does not affect the group.
 */
final class Acceptor implements Admission.Host<AcceptedConnection> {

    /** Owner of the acceptor: rank 0's {@link Coordinator}, which applies the acceptor's decisions to the group. */
    interface Host {

        /** Admits a rank that belongs to the group and is not yet present. */
        void admit(AcceptedConnection peer) throws IOException;

        /**
         * Reports a rank that knows the secret, but states another group size or a rank number outside the group. The
         * job was then started wrongly.
         */
        void contradicted(int rank, String how);
    }

    private static final Logger LOG = LogManager.getLogger(Acceptor.class);
    /** Time for a client to send its hello, and for a refused client to disconnect. */
    private static final Duration HANDSHAKE = Duration.ofSeconds(10);
    /**
     * Time for a client to send its proof, counted from the client's hello. Under TLS, a client has the same time for
     * its hello, counted from the proof that it sends before TLS. With scarce cores, a rank may need half a minute for
     * its TLS handshake or its proof. With a shorter time, rank 0 would close the connection, the rank would begin a
     * new handshake, and rank 0 would never admit it.
     */
    private static final Duration PROOF = Duration.ofMinutes(2);
    /**
     * Bounds of the hold time, in milliseconds. Rank 0 holds a rank that started before rank 0 on the same machine, and
     * admits the rank after the hold time. Without {@code MILLRACE_RUN_ID} such a rank may be left over from an earlier
     * run. During the hold time, the right rank can arrive. The hold time is {@link #HOLD_FACTOR} times the difference
     * of the starts, within these bounds.
     */
    private static final long MIN_HOLD_MILLIS = 200;
    private static final long MAX_HOLD_MILLIS = 1000;
    private static final int HOLD_FACTOR = 10;
    /**
     * Time during which rank 0 still accepts connections when it leaves a group that failed before all ranks arrived.
     * Ranks that connect in this time immediately receive the reason of the failure.
     */
    private static final Duration LATECOMERS = Duration.ofSeconds(1);
    /**
     * Maximum number of clients that have not yet proved that they know the secret. Ranks alone do not reach the limit,
     * because fewer than {@value} ranks connect at the same time. If more clients connect, rank 0 drops some of them.
     * Clients therefore cannot use up the process's file descriptors.
     */
    private static final int MAX_UNPROVEN = 1024;

    private final GroupState group;
    private final BootstrapListener listener;
    private final Selector selector;
    private final Host host;
    private final Admission.Accept accept;
    private final SelectionKey key;
    /** Accepted clients that are not members of the group. A client may become a member later. */
    private final Admission<AcceptedConnection> unproven = new Admission<>(MAX_UNPROVEN, this);
    /**
     * Addresses from which this round of the control thread's loop has already read TLS handshake data. See
     * {@link #isTurnOf}.
     */
    private final Set<Object> heardInRound = new HashSet<>();
    /** Ranks that have proved that they know the secret. Rank 0 may have admitted or refused them. */
    private final BitSet heard = new BitSet();
    /** Time until which a leaving rank 0 still accepts late ranks; null until rank 0 leaves. */
    private @Nullable Deadline latecomers;
    private boolean warned;
    private int refused;

    Acceptor(GroupState group, BootstrapListener listener, Selector selector, Host host, Admission.Accept accept)
            throws IOException {
        this.accept = accept;
        this.group = group;
        this.listener = listener;
        this.selector = selector;
        this.host = host;
        heard.set(group.self().rank());
        listener.channel().configureBlocking(false);
        key = listener.channel().register(selector, SelectionKey.OP_ACCEPT);
    }

    /** Accepts some of the waiting clients. Returns false if no other client waits. */
    boolean accept() {
        boolean more = unproven.accept(accept);
        if (unproven.pauseNanos() > 0 && key.isValid()) {
            // Rank 0 could not accept a client, and accepts none until its pause ends. Without the pause, the selector
            // would report the waiting connection repeatedly.
            key.interestOps(0);
        }
        return more;
    }

    @Override
    public AcceptedConnection arrived(SocketChannel channel) throws IOException {
        SocketChannel stream =
                listener.tls() == null ? channel : listener.tls().server(channel, listener.secret().forTls());
        return new AcceptedConnection(new ControlConnection(stream, selector), Deadline.in(HANDSHAKE));
    }

    /**
     * Returns whether a client has proved before TLS that it knows the secret. Returns false without a configured
     * secret, because any client can then compute this proof.
     */
    @Override
    public boolean knowsSecret(AcceptedConnection peer) {
        return listener.secret().isSecret() && peer.connection.knowsSecret();
    }

    @Override
    public void drop(AcceptedConnection peer, String why) {
        drop(peer);
        if (peer.stage != Stage.REFUSED) {
            note(peer, why);
        }
    }

    /**
     * Returns whether the client's data may be read in this round. If only certificates identify ranks, any client can
     * start a TLS handshake. In each round, this method then allows one such client of each address. Clients from one
     * address therefore delay neither clients from other addresses nor members.
     */
    boolean isTurnOf(AcceptedConnection peer) {
        return !peer.connection.makesTlsHandshake() || listener.secret().isSecret()
                || heardInRound.add(peer.connection.source());
    }

    /** Handles a message from a client that is not admitted. */
    void handle(AcceptedConnection peer, Message message) throws IOException {
        switch (message) {
            case Message any when peer.stage == Stage.REFUSED ->
                LOG.trace("{} was refused and still sends: {}", peer.connection.remote(), any);
            case Hello hello when peer.stage == Stage.EXPECTS_HELLO -> challenge(peer, hello);
            case OtherVersion other when peer.stage == Stage.EXPECTS_HELLO ->
                refuse(peer, "it uses version " + other.version() + " of the control protocol, rank 0 version "
                        + MessageCodec.VERSION + "; all ranks need the same release");
            case Proof proof when peer.stage == Stage.EXPECTS_PROOF -> examine(peer, proof);
            default ->
                throw new ProtocolException("sent a " + message.getClass().getSimpleName() + " before its admission");
        }
    }

    private void challenge(AcceptedConnection peer, Hello hello) {
        peer.hello = hello;
        peer.stage = Stage.EXPECTS_PROOF;
        peer.handshake = Deadline.in(PROOF);
        byte[] proof = listener.secret().proof(Secret.Side.COORDINATOR, hello, group.self(), peer.nonce);
        peer.connection.send(MessageCodec.encode(new Challenge(group.self(), peer.nonce, proof)));
        String otherRun = hello.identity().otherRun(group.self());
        if (otherRun != null) {
            refuse(peer, otherRun);
        }
    }

    private void examine(AcceptedConnection peer, Proof proof) throws IOException {
        RankIdentity who = peer.identity();
        if (!Secret.same(listener.secret().proof(Secret.Side.MEMBER, peer.hello, group.self(), peer.nonce),
                proof.proof())) {
            refuse(peer, "it does not know this group's secret");
            return;
        }
        peer.connection.sealIncoming(listener.secret().seal(Secret.Side.MEMBER, peer.hello, group.self(), peer.nonce));
        peer.connection
                .sealOutgoing(listener.secret().seal(Secret.Side.COORDINATOR, peer.hello, group.self(), peer.nonce));
        String contradiction = contradiction(who, peer.hello.size());
        if (who.rank() >= 0 && who.rank() < group.size()) {
            heard.set(who.rank());
        }
        if (contradiction != null) {
            refuse(peer, contradiction);
            // A rank that started before rank 0 may be of another run, and must not end this group.
            if (who.millisBeforeZero(group.self()) < 0) {
                host.contradicted(who.rank(), contradiction);
            }
        } else if (group.failure() != null) {
            refuse(peer, group.failure().message());
        } else if (isRight(peer)) {
            long before = who.millisBeforeZero(group.self());
            if (before < 0) {
                admit(peer);
            } else {
                peer.stage = Stage.HELD;
                peer.handshake = Deadline
                        .in(Duration.ofMillis(Math.clamp(before * HOLD_FACTOR, MIN_HOLD_MILLIS, MAX_HOLD_MILLIS)));
            }
        }
    }

    /**
     * Returns whether the peer is allowed to have the rank number that it claims. If another process also claims the
     * number, refuses one of the two processes. The join fails if the peer has priority over a member, or if the start
     * times of the two processes have no order. If such a join succeeded, the group could compute with the wrong
     * process's data.
     */
    private boolean isRight(AcceptedConnection peer) {
        RankIdentity who = peer.identity();
        RankIdentity member = group.identity(who.rank());
        AcceptedConnection held = held().filter(other -> other.identity().rank() == who.rank()).findAny().orElse(null);
        if (member == null && held == null) {
            return true;
        }
        RankIdentity first = member == null ? held.identity() : member;
        boolean replaces = who.replaces(first, group.self());
        boolean unknown = who.hasNoOrder(first);
        String reason = "two processes claim rank " + who.rank() + ": " + first.process(group.self()) + ", and "
                + who.process(group.self())
                + "; end the one of another run, or give each run its own port or MILLRACE_RUN_ID";
        refuse(replaces && held != null ? held : peer, reason);
        if (unknown && held != null) {
            refuse(held, reason);
        }
        if (unknown || replaces && held == null) {
            host.contradicted(who.rank(), reason);
        }
        return replaces && held != null;
    }

    private Stream<AcceptedConnection> held() {
        return unproven.all().stream().filter(peer -> peer.stage == Stage.HELD);
    }

    /**
     * Returns the held ranks that the caller must now pass to {@link #admit}. If the group has failed, these are all
     * held ranks. Otherwise they are the ranks that were held for the hold time.
     */
    List<AcceptedConnection> due() {
        return held().filter(peer -> peer.handshake.expired() || group.failure() != null).toList();
    }

    /** Makes a rank a member of the group. Refuses the rank if the group has failed. */
    void admit(AcceptedConnection peer) throws IOException {
        if (group.failure() != null) {
            refuse(peer, group.failure().message());
        } else {
            unproven.remove(peer);
            peer.stage = Stage.MEMBER;
            peer.connection.trust(peer.identity());
            host.admit(peer);
        }
    }

    private @Nullable String contradiction(RankIdentity who, int size) {
        if (size != group.size()) {
            return who + " states that the group has " + size + " ranks, rank 0 states " + group.size();
        }
        return who.rank() >= 0 && who.rank() < size ? null
                : who + " is outside of the group, whose ranks are 0 to " + (size - 1);
    }

    private void refuse(AcceptedConnection peer, String reason) {
        peer.handshake = peer.stage == Stage.HELD ? Deadline.in(HANDSHAKE) : peer.handshake.orIn(HANDSHAKE);
        peer.stage = Stage.REFUSED;
        peer.connection.send(MessageCodec.encode(new Rejected(reason)));
        peer.connection.finish();
        note(peer, reason);
    }

    /**
     * Records a refusal, because it may explain to the user why a rank is missing. The first refusal is logged as a
     * warning. The latest refusal becomes part of the error message if the group cannot be formed.
     */
    private void note(AcceptedConnection peer, String reason) {
        String what = peer.connection.remote() + ": " + reason;
        refused++;
        group.refused(refused == 1 ? what : what + " (and " + (refused - 1) + " more before it)");
        if (warned) {
            LOG.debug("rank 0 refused a connection from {}", what);
        } else {
            warned = true;
            LOG.warn("rank 0 refused a connection from {} (further ones are logged at debug)", what);
        }
    }

    /** Drops a client that is not a member. The client's connection has ended, or must end. */
    void lost(AcceptedConnection peer, IOException cause) {
        if (cause instanceof ProtocolException) {
            drop(peer, cause.getMessage());
        } else {
            drop(peer);
        }
    }

    private void drop(AcceptedConnection peer) {
        unproven.remove(peer);
        peer.connection.close();
    }

    /**
     * Accepts the connections that already wait, and closes the listener. Accepted connections are served to their end.
     * The port is free when this method returns.
     */
    void stopAccepting() throws IOException {
        for (int waiting = 0; waiting < Rendezvous.BACKLOG && accept(); waiting += Admission.MAX_ACCEPTED) {
            // The loop's condition accepts the connections that already wait.
        }
        ended();
        // The socket of a registered channel is closed only when the selector removes the channel's key.
        selector.selectNow();
        // The call above consumes an earlier wakeup, but the control thread has not yet served the request behind it.
        selector.wakeup();
    }

    /**
     * Starts to leave the group. If the group failed before all ranks arrived, rank 0 continues to accept for
     * {@link #LATECOMERS}. Rank 0 sends the reason of the failure to each rank that connects late.
     */
    void leave() {
        held().forEach(peer -> refuse(peer, "rank 0 left before it admitted this rank"));
        boolean othersDoNotKnow = group.failure() != null && !group.isComplete();
        latecomers = Deadline.in(othersDoNotKnow ? LATECOMERS : Duration.ZERO);
        tick();
    }

    void tick() {
        heardInRound.clear();
        if (unproven.pauseNanos() == 0 && key.isValid()) {
            key.interestOps(SelectionKey.OP_ACCEPT);
        }
        if (latecomers != null && (latecomers.expired() || heard.cardinality() == group.size())) {
            ended();
            unproven.all().stream().filter(peer -> peer.stage != Stage.REFUSED).forEach(this::drop);
        }
        for (AcceptedConnection peer : unproven.all()) {
            if (peer.stage == Stage.EXPECTS_HELLO && peer.connection.knowsSecret()
                    && peer.handshake.allowed().equals(HANDSHAKE)) {
                peer.handshake = Deadline.in(PROOF);
            }
            if (peer.handshake.expired() && peer.stage != Stage.HELD) {
                drop(peer, "it did not identify itself within " + peer.handshake);
            }
        }
    }

    long nanosToNextTick() {
        long nanos =
                unproven.all().stream().mapToLong(peer -> peer.handshake.remainingNanos()).min().orElse(Long.MAX_VALUE);
        // If the key's interest is 0, rank 0 pauses and accepts no client (see accept). The next tick is due at the end
        // of the pause. If the pause has just ended, the tick is due now.
        if (key.isValid() && key.interestOps() == 0) {
            nanos = Math.min(nanos, unproven.pauseNanos());
        }
        return latecomers == null || !listener.channel().isOpen() ? nanos
                : Math.min(nanos, latecomers.remainingNanos());
    }

    /** Closes the listener. May be called twice. */
    void ended() {
        unproven.closeReserve();
        if (listener.channel().isOpen()) {
            listener.close();
        }
    }

    boolean isOver() {
        return unproven.isEmpty() && !listener.channel().isOpen();
    }

    /**
     * Connection that rank 0 has accepted, until it is closed. Its peer is first a client and, after admission, a
     * member.
     */
    static final class AcceptedConnection {

        /** State of the connection. It never returns to an earlier state. */
        enum Stage {
            EXPECTS_HELLO, EXPECTS_PROOF, HELD, MEMBER, FAILED, DEPARTED, REFUSED
        }

        final ControlConnection connection;
        /**
         * Time until which the connection must reach its next state. For a held connection, the end of the hold time.
         * Has no effect after admission.
         */
        Deadline handshake;
        /**
         * Random bytes of rank 0. The proofs of both sides depend on them, so that a proof is valid on this connection
         * only.
         */
        final byte[] nonce = Secret.randomBytes();

        Stage stage = Stage.EXPECTS_HELLO;
        /** Hello of the peer, not trusted until the peer has proved that it knows the secret. */
        @Nullable
        Hello hello;

        AcceptedConnection(ControlConnection connection, Deadline handshake) {
            this.connection = connection;
            this.handshake = handshake;
            connection.attach(this);
        }

        /** Returns whether the peer was admitted to the group, even if it has failed or left since. */
        boolean admitted() {
            return stage == Stage.MEMBER || stage == Stage.FAILED || stage == Stage.DEPARTED;
        }

        RankIdentity identity() {
            return hello.identity();
        }
    }
}
