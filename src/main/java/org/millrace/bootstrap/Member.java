package org.millrace.bootstrap;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ProtocolException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import org.millrace.CommunicatorException;
import org.millrace.bootstrap.BootstrapClient.RankZero;
import org.millrace.bootstrap.Message.Contribution;
import org.millrace.bootstrap.Message.Departed;
import org.millrace.bootstrap.Message.Failed;
import org.millrace.bootstrap.Message.PeerMessage;
import org.millrace.bootstrap.Message.Present;
import org.millrace.bootstrap.Message.Recovery;
import org.millrace.bootstrap.Message.Rejected;
import org.millrace.net.socket.Reconnector;
import org.millrace.net.socket.SocketOptions;

/**
 * Control loop of a rank other than rank 0. It has one connection, to rank 0, which relays the messages of the other
 * ranks.
 */
final class Member extends ControlLoop {

    private final ControlConnection connection;
    private final RankIdentity coordinator;
    /**
     * Nonce that rank 0 sent in the handshake. The nonce identifies the connection when the connection is recovered.
     */
    private final byte[] nonce;
    private boolean answered;
    private boolean leaving;

    /** Creates the loop after this rank has sent its {@link Message.Proof}. */
    Member(GroupState group, Selector selector, SocketOptions sockets, RankZero rankZero) {
        super(group, selector, sockets);
        connection = rankZero.connection();
        coordinator = rankZero.challenge().identity();
        nonce = rankZero.challenge().nonce();
    }

    @Override
    InetAddress address() {
        return connection.local();
    }

    @Override
    void tell(Message message) {
        connection.send(MessageCodec.encode(message));
    }

    @Override
    void leave() {
        leaving = true;
        tell(new Departed(group.self().rank()));
        connection.finish();
    }

    /**
     * Returns true once rank 0 has answered the proof, even if the answer violates the protocol. After an answer, this
     * rank does not try to connect again, because a further connection would not help.
     */
    boolean isAnswered() {
        return answered;
    }

    /**
     * Handles received messages, if any, before the control thread exists.
     *
     * @throws IOException if rank 0 ended the connection before it answered the proof
     */
    void hear() throws IOException {
        try {
            connection.serve(this::handle);
        } catch (IOException e) {
            if (!answered && !(e instanceof ProtocolException)) {
                throw new IOException(
                        coordinator + " ended the connection before it admitted this rank: " + e.getMessage(), e);
            }
            answered = true;
            lost(e);
        }
    }

    void close() {
        connection.close();
        closeReconnector();
    }

    @Override
    void ready(SelectionKey key) {
        try {
            connection.serve(this::handle);
        } catch (IOException e) {
            lost(e);
        }
    }

    @Override
    void tick() {
        try {
            connection.recover(this::handle);
        } catch (IOException e) {
            lost(e);
        }
    }

    private void lost(IOException e) {
        if (connection.recovers(e)) {
            return;
        }
        connection.close();
        if (!leaving) {
            boolean spokeWrongly = e instanceof ProtocolException;
            group.failed(new RemoteFailure(coordinator.rank(),
                    spokeWrongly ? RemoteFailure.Kind.FAILED : RemoteFailure.Kind.LOST, CommunicatorException.NO_RANK,
                    "", coordinator + (spokeWrongly ? " " : " is gone: ") + e.getMessage()));
        }
    }

    private void recover(byte[] offer) throws IOException {
        Reconnector by = reconnector();
        if (by == null) {
            tell(new Recovery(new byte[0]));
        } else {
            connection.recoverBy(by, nonce, false, offer);
            connection.offerRecovery(by);
        }
    }

    private void handle(Message message) throws IOException {
        answered = true;
        switch (message) {
            case Present arrival -> group.present(arrival.identity());
            case Contribution part -> group.contributed(part);
            case PeerMessage direct -> group.arrived(direct);
            case Failed failed -> group.failed(failed.failure());
            case Departed departed -> depart(departed.rank());
            case Recovery recovery -> recover(recovery.offer());
            case Rejected rejected -> {
                group.poison(new RemoteFailure(group.self().rank(),
                        coordinator + " does not admit it: " + rejected.reason()));
                connection.close();
            }
            default -> throw new ProtocolException(
                    "sent a " + message.getClass().getSimpleName() + ", which rank 0 never sends to a member");
        }
    }

    private void depart(int rank) throws ProtocolException {
        group.departed(rank);
        if (rank == coordinator.rank()) {
            connection.close();
        }
    }

    @Override
    void ended() {
        connection.close();
    }

    @Override
    boolean finished() {
        return !connection.isOpen();
    }
}
