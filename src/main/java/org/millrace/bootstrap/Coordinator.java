package org.millrace.bootstrap;

import static org.millrace.CommunicatorException.NO_RANK;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.bootstrap.Acceptor.AcceptedConnection.Stage;
import org.millrace.bootstrap.Acceptor.AcceptedConnection;
import org.millrace.bootstrap.Message.Contribution;
import org.millrace.bootstrap.Message.Departed;
import org.millrace.bootstrap.Message.Failed;
import org.millrace.bootstrap.Message.PeerMessage;
import org.millrace.bootstrap.Message.Present;
import org.millrace.bootstrap.Message.Recovery;
import org.millrace.bootstrap.Rendezvous.BootstrapListener;
import org.millrace.net.socket.Reconnector;
import org.millrace.net.socket.SocketOptions;

/**
 * Control loop of rank 0. It relays each rank's messages to all others, and informs them if a rank is lost.
 * {@link Acceptor} decides on admission.
 */
final class Coordinator extends ControlLoop implements Acceptor.Host {

    private final Acceptor acceptor;
    private final List<AcceptedConnection> members = new ArrayList<>();
    private final InetAddress address;
    private boolean leaving;

    private Coordinator(GroupState group, BootstrapListener listener, Selector selector, SocketOptions sockets)
            throws IOException {
        super(group, selector, sockets);
        this.address = listener.address();
        this.acceptor = new Acceptor(group, listener, selector, this, listener.channel()::accept);
    }

    /** Creates the loop, which then owns the listener. On failure, this method closes the listener. */
    static Coordinator open(GroupState group, BootstrapListener listener, Selector selector, SocketOptions sockets)
            throws IOException {
        try {
            return new Coordinator(group, listener, selector, sockets);
        } catch (IOException | RuntimeException e) {
            listener.close();
            throw e;
        }
    }

    @Override
    InetAddress address() {
        return address;
    }

    @Override
    void tell(Message message) {
        if (message instanceof Failed failed) {
            tell(told(group.self(), failed.failure()), null);
        } else if (message instanceof PeerMessage direct) {
            send(direct);
        } else {
            relay(MessageCodec.encode(message), null);
        }
    }

    @Override
    void leave() {
        if (!leaving) {
            relay(MessageCodec.encode(new Departed(group.self().rank())), null);
            members.forEach(member -> member.connection.finish());
            leaving = true;
            acceptor.leave();
        }
    }

    @Override
    void ready(SelectionKey key) {
        if (key.attachment() instanceof AcceptedConnection peer) {
            if (!acceptor.isTurnOf(peer)) {
                return; // The client's data stays unread, so the selector reports the key again in the next round.
            }
            try {
                peer.connection.serve(message -> handle(peer, message));
            } catch (IOException e) {
                lost(peer, e);
            }
        } else {
            acceptor.accept();
        }
    }

    private void handle(AcceptedConnection peer, Message message) throws IOException {
        if (!peer.admitted()) {
            acceptor.handle(peer, message);
        } else if (!leaving) { // A leaving rank 0 ignores messages, and waits until its members disconnect.
            handleMember(peer, message);
        }
    }

    private void handleMember(AcceptedConnection peer, Message message) throws IOException {
        switch (message) {
            case Contribution part when part.rank() == peer.identity().rank() -> {
                // The frame is encoded before the group receives the data, because a caller of this rank may then
                // change the data.
                ByteBuffer frame = MessageCodec.encode(part);
                group.contributed(part);
                relay(frame, peer);
            }
            case PeerMessage direct when direct.from() == peer.identity().rank() -> deliver(direct);
            case Failed failed -> fail(peer, told(peer.identity(), failed.failure()));
            case Departed departed -> depart(peer);
            case Recovery answer -> recover(peer, answer.offer());
            default -> throw new ProtocolException(
                    "sent a " + message.getClass().getSimpleName() + " that is not for it to send");
        }
    }

    private void recover(AcceptedConnection peer, byte[] offer) throws IOException {
        Reconnector by = reconnector();
        if (offer.length == 0 || by == null) {
            peer.connection.neverRecover();
        } else {
            peer.connection.recoverBy(by, peer.nonce, true, offer);
        }
    }

    private void deliver(PeerMessage message) throws ProtocolException {
        if (message.to() == group.self().rank()) {
            group.arrived(message);
        } else {
            send(message);
        }
    }

    /**
     * Sends a message to one member. A message to a rank that has left is dropped. A sender that waits for an answer
     * learns from another message that the rank has left or is lost.
     */
    private void send(PeerMessage message) {
        for (AcceptedConnection member : members) {
            if (member.identity().rank() == message.to()) {
                member.connection.send(MessageCodec.encode(message));
            }
        }
    }

    @Override
    public void admit(AcceptedConnection peer) throws IOException {
        members.add(peer);
        Reconnector by = peer.connection.leavesHost() ? reconnector() : null;
        if (by != null) {
            peer.connection.offerRecovery(by);
        }
        if (members.size() == group.size() - 1) {
            // The port must be free before any rank can learn that the group is complete: a rank that proceeds to its
            // next group must not find this listener.
            acceptor.stopAccepting();
        }
        for (int rank = 0; rank < group.size(); rank++) {
            RankIdentity there = group.identity(rank);
            if (there != null) {
                peer.connection.send(MessageCodec.encode(new Present(there)));
            }
        }
        relay(MessageCodec.encode(new Present(peer.identity())), null);
        group.present(peer.identity());
    }

    @Override
    public void contradicted(int rank, String how) {
        if (!group.isComplete()) { // A late client must not disturb a complete group.
            tell(new RemoteFailure(rank, RemoteFailure.Kind.MISMATCH, NO_RANK, "", how), null);
        }
    }

    private void depart(AcceptedConnection peer) throws ProtocolException {
        if (!group.isComplete()) {
            fail(peer, lost(peer, "left before the group was complete"));
        }
        peer.stage = Stage.DEPARTED;
        group.departed(peer.identity().rank());
        relay(MessageCodec.encode(new Departed(peer.identity().rank())), peer);
        peer.connection.finish();
    }

    private void lost(AcceptedConnection peer, IOException cause) {
        if (!peer.admitted()) {
            acceptor.lost(peer, cause);
            return;
        }
        if (peer.stage == Stage.MEMBER && peer.connection.recovers(cause)) {
            return;
        }
        peer.connection.close();
        if (!leaving) {
            fail(peer,
                    cause instanceof ProtocolException
                            ? new RemoteFailure(peer.identity().rank(), peer.identity() + " " + cause.getMessage())
                            : lost(peer, "is gone: " + cause.getMessage()));
        }
    }

    /**
     * Reports the failure of a member. Only the first report counts, because later reports are consequences of the
     * first failure.
     */
    private void fail(AcceptedConnection peer, RemoteFailure fate) {
        if (peer.stage == Stage.MEMBER) {
            peer.stage = Stage.FAILED;
            tell(fate, peer);
        }
    }

    /** Reports a failure to all ranks except the rank at {@code source}; null excludes no rank. */
    private void tell(RemoteFailure failure, @Nullable AcceptedConnection source) {
        if (failure.rank() != group.self().rank()) {
            group.failed(failure);
        }
        relay(MessageCodec.encode(new Failed(failure)), source);
    }

    /** Returns a failure that a rank reported, attributed to that rank regardless of the rank number in the report. */
    private RemoteFailure told(RankIdentity who, RemoteFailure theirs) {
        int peer = theirs.peer() < group.size() ? theirs.peer() : NO_RANK;
        return new RemoteFailure(who.rank(), theirs.kind(), peer, theirs.operation(),
                who + " failed: " + RemoteFailure.withoutRank(who.rank(), theirs.message()));
    }

    private static RemoteFailure lost(AcceptedConnection peer, String fate) {
        return new RemoteFailure(peer.identity().rank(), RemoteFailure.Kind.LOST, NO_RANK, "",
                peer.identity() + " " + fate);
    }

    private void relay(ByteBuffer frame, @Nullable AcceptedConnection source) {
        for (AcceptedConnection member : members) {
            if (member != source) {
                member.connection.send(frame);
            }
        }
    }

    @Override
    void tick() {
        acceptor.tick();
        for (AcceptedConnection peer : acceptor.due()) {
            try {
                acceptor.admit(peer);
            } catch (IOException e) {
                lost(peer, e);
            }
        }
        for (AcceptedConnection member : members) {
            try {
                member.connection.recover(message -> handle(member, message));
            } catch (IOException e) {
                lost(member, e);
            }
        }
    }

    @Override
    long nanosToNextTick() {
        return acceptor.nanosToNextTick();
    }

    @Override
    boolean finished() {
        return leaving && acceptor.isOver() && members.stream().noneMatch(member -> member.connection.isOpen());
    }

    @Override
    void ended() {
        acceptor.ended();
        members.forEach(member -> member.connection.close());
    }
}
