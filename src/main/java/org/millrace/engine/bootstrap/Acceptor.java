package org.millrace.engine.bootstrap;

import java.io.IOException;
import java.net.ProtocolException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.BitSet;
import java.util.HashSet;
import java.util.Set;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.engine.bootstrap.Acceptor.AcceptedConnection;
import org.millrace.engine.bootstrap.Acceptor.AcceptedConnection.Stage;
import org.millrace.engine.bootstrap.Message.Challenge;
import org.millrace.engine.bootstrap.Message.Hello;
import org.millrace.engine.bootstrap.Message.OtherVersion;
import org.millrace.engine.bootstrap.Message.Proof;
import org.millrace.engine.bootstrap.Message.Rejected;
import org.millrace.engine.bootstrap.Rendezvous.BootstrapListener;
import org.millrace.net.connection.Admission;

/**
 * Accepts connections for rank 0 and decides who is let in. Who does not belong here is told so, and changes nothing
 * for the group.
 */
final class Acceptor implements Admission.Host<AcceptedConnection> {

    /** Decides what a rank's arrival means for the group. */
    interface Host {

        /** The rank belongs to the group and is not there yet. */
        void admit(AcceptedConnection peer) throws IOException;

        /** A rank that knows the secret contradicts this one: the job was started wrongly. */
        void contradicted(int rank, String how);
    }

    private static final Logger LOG = LogManager.getLogger(Acceptor.class);
    /** How long a client may take to say who it is, and a refused one to go. */
    private static final Duration HANDSHAKE = Duration.ofSeconds(10);
    /**
     * How long it may then take to show that it belongs here. A rank whose connection ends begins anew, and where cores
     * are scarce it may take half a minute to compute its proof: with less time it would never come in.
     */
    private static final Duration PROOF = Duration.ofMinutes(2);
    /**
     * How long a group that failed goes on accepting, so that ranks that are still on their way learn why at once.
     */
    private static final Duration LATECOMERS = Duration.ofSeconds(1);
    /**
     * More clients than this that have not shown who they are do not come together as ranks do; some are dropped, so
     * that they cannot use up the process's files.
     */
    private static final int MAX_UNPROVEN = 1024;

    private final GroupState group;
    private final BootstrapListener listener;
    private final Selector selector;
    private final Host host;
    private final Admission.Accept accept;
    private final SelectionKey key;
    /** Accepted and not admitted. */
    private final Admission<AcceptedConnection> unproven = new Admission<>(MAX_UNPROVEN, this);
    /** Addresses, one client of each of which was heard in this round under TLS: see {@link #isTurnOf}. */
    private final Set<Object> heardInRound = new HashSet<>();
    /** The ranks that have shown that they know the secret, whatever was answered. */
    private final BitSet heard = new BitSet();
    /** When the last latecomers are given up; null as long as this rank has not left. */
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

    /** Some of those who come; false if nobody else waits. */
    boolean accept() {
        boolean more = unproven.accept(accept);
        if (unproven.pauseNanos() > 0 && key.isValid()) {
            key.interestOps(0); // the selector would say at once, and again and again, that a connection waits
        }
        return more;
    }

    @Override
    public AcceptedConnection arrived(SocketChannel channel) throws IOException {
        SocketChannel stream =
                listener.tls() == null ? channel : listener.tls().server(channel, listener.secret().forTls());
        return new AcceptedConnection(new ControlConnection(stream, selector), Deadline.in(HANDSHAKE));
    }

    /** Without a secret, all the world knows what a client shows before TLS. */
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
     * Whether what a client says may be heard in this round. Where a handshake of TLS is made with any client that asks
     * for one, as certificates alone say who a rank is, it is one for each address: those from one do not keep out who
     * comes from another, and not the members.
     */
    boolean isTurnOf(AcceptedConnection peer) {
        return !peer.connection.makesTlsHandshake() || listener.secret().isSecret()
                || heardInRound.add(peer.connection.source());
    }

    /** What somebody says who is not admitted yet. */
    void handle(AcceptedConnection peer, Message message) throws IOException {
        switch (message) {
            case Message any when peer.stage == Stage.REFUSED ->
                LOG.trace("{} was refused and goes on: {}", peer.connection.remote(), any);
            case Hello hello when peer.stage == Stage.EXPECTS_HELLO -> challenge(peer, hello);
            case OtherVersion other when peer.stage == Stage.EXPECTS_HELLO ->
                refuse(peer, "it speaks version " + other.version() + " of the control protocol, rank 0 version "
                        + MessageCodec.VERSION + "; all ranks need the same release");
            case Proof proof when peer.stage == Stage.EXPECTS_PROOF -> examine(peer, proof);
            default ->
                throw new ProtocolException("sent a " + message.getClass().getSimpleName() + " before it was let in");
        }
    }

    private void challenge(AcceptedConnection peer, Hello hello) {
        peer.hello = hello;
        peer.stage = Stage.EXPECTS_PROOF;
        peer.handshake = Deadline.in(PROOF);
        byte[] proof = listener.secret().proof(Secret.Side.COORDINATOR, hello, group.self(), peer.nonce);
        peer.connection
                .send(MessageCodec.encode(new Challenge(group.self().pid(), group.self().host(), peer.nonce, proof)));
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
            host.contradicted(who.rank(), contradiction);
        } else if (group.identity(who.rank()) != null) {
            refuse(peer, "rank " + who.rank() + " is already taken by " + group.identity(who.rank()).process()
                    + "; the second one is " + who.process());
        } else if (group.failure() != null) {
            refuse(peer, group.failure().message());
        } else {
            unproven.remove(peer);
            peer.stage = Stage.MEMBER;
            peer.connection.trust(who);
            host.admit(peer);
        }
    }

    private @Nullable String contradiction(RankIdentity who, int size) {
        if (size != group.size()) {
            return who + " says the group has " + size + " ranks, rank 0 says " + group.size();
        }
        return who.rank() >= 0 && who.rank() < size ? null
                : who + " is outside of the group, whose ranks are 0 to " + (size - 1);
    }

    private void refuse(AcceptedConnection peer, String reason) {
        peer.stage = Stage.REFUSED;
        peer.handshake = peer.handshake.orIn(HANDSHAKE);
        peer.connection.send(MessageCodec.encode(new Rejected(reason)));
        peer.connection.finish();
        note(peer, reason);
    }

    /**
     * For people who wonder why a rank does not come: in the log once, and in the message if the group does not come
     * together.
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

    /** The connection of somebody who was not admitted has ended, or has to. */
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

    /** No new connections. Those that were made are heard to the end. The port is free when this returns. */
    void stopAccepting() throws IOException {
        for (int waiting = 0; waiting < Rendezvous.BACKLOG && accept(); waiting += Admission.MAX_ACCEPTED) {
            // more of those who came before
        }
        ended();
        selector.selectNow(); // a registered channel is closed in earnest only when the selector has forgotten it
    }

    /** This rank leaves. If it does because the group failed early, the ranks that have not come yet are still told. */
    void leave() {
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
            if (peer.handshake.expired()) {
                drop(peer, "it did not introduce itself within " + peer.handshake);
            }
        }
    }

    long nanosToNextTick() {
        long nanos =
                unproven.all().stream().mapToLong(peer -> peer.handshake.remainingNanos()).min().orElse(Long.MAX_VALUE);
        if (key.isValid() && key.interestOps() == 0) { // also if the pause is over by now
            nanos = Math.min(nanos, unproven.pauseNanos());
        }
        return latecomers == null || !listener.channel().isOpen() ? nanos
                : Math.min(nanos, latecomers.remainingNanos());
    }

    /** Also if it has ended already. */
    void ended() {
        unproven.closeReserve();
        if (listener.channel().isOpen()) {
            listener.close();
        }
    }

    boolean isOver() {
        return unproven.isEmpty() && !listener.channel().isOpen();
    }

    /** A connection that rank 0 accepted, from a client's first byte to the end of a member's. */
    static final class AcceptedConnection {

        /** How far the connection has come; it only moves on. */
        enum Stage {
            EXPECTS_HELLO, EXPECTS_PROOF, MEMBER, FAILED, DEPARTED, REFUSED
        }

        final ControlConnection connection;
        /** By when it has to have come further. */
        Deadline handshake;
        /** What is hashed into both sides' proofs, so that none can be used twice. */
        final byte[] nonce = Secret.randomBytes();

        Stage stage = Stage.EXPECTS_HELLO;
        /** What the other side says of itself; believed once it has shown that it knows the secret. */
        @Nullable
        Hello hello;

        AcceptedConnection(ControlConnection connection, Deadline handshake) {
            this.connection = connection;
            this.handshake = handshake;
            connection.attach(this);
        }

        /** True from acceptor to the end, whatever has become of the rank since. */
        boolean admitted() {
            return stage == Stage.MEMBER || stage == Stage.FAILED || stage == Stage.DEPARTED;
        }

        RankIdentity identity() {
            return hello.identity();
        }
    }
}
