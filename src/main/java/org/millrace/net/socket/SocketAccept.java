package org.millrace.net.socket;

import java.io.EOFException;
import java.io.IOException;
import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.connection.ExpectedConnection;
import org.millrace.net.connection.HandshakeReply.Refusal;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.KeyedListener;
import org.millrace.net.connection.OpenResources;

/**
 * A connection that a listener expects, and the streams of one client that have arrived for it. When all streams have
 * arrived, this process answers, and the client confirms that it has received the answer. If a client loses its streams
 * before the confirmation, it connects again, and is accepted again.
 */
final class SocketAccept extends ExpectedConnection<SocketListener.Client> {

    private static final Logger LOG = LogManager.getLogger(SocketAccept.class);

    private final OpenResources network;
    private final @Nullable Reconnector reconnector;
    /** Streams of the client that was answered and has not confirmed the answer; empty without such a client. */
    private List<SocketListener.Client> answered = List.of();
    /**
     * Object that restores lost streams of the client in {@link #answered}; null if this process or the client does not
     * restore lost streams.
     */
    private @Nullable StreamRecovery recovery;
    private final ByteBuffer confirmation = ByteBuffer.allocate(HandshakeReply.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private boolean isAsked;

    /** @param reconnector restores lost streams; null if lost streams are not restored */
    SocketAccept(KeyedListener<SocketListener.Client> listener, OpenResources network, ConnectionKey key,
            @Nullable Reconnector reconnector) {
        super(listener, key);
        this.network = network;
        this.reconnector = reconnector;
    }

    @Override
    protected void check(SocketListener.Client stream) throws Refusal {
        if (isAnswered() && !stream.isOfProcess(answered.getFirst())) {
            throw new Refusal(HandshakeReply.KEY_TAKEN, "another client has connected with key " + key());
        }
        if (came().isEmpty()) {
            return;
        }
        StreamHello hello = stream.hello();
        StreamHello first = came().getFirst().hello();
        if (hello.attempt() != first.attempt()) {
            throw new Refusal(HandshakeReply.KEY_TAKEN, "another client is connecting with key " + key());
        }
        if (!hello.agreesWith(first) || came().stream().anyMatch(other -> other.hello().stream() == hello.stream())) {
            throw new Refusal(HandshakeReply.MALFORMED, "it contradicts the other streams of key " + key());
        }
    }

    @Override
    protected boolean isComplete() {
        return super.isComplete() && came().size() == came().getFirst().hello().streams();
    }

    @Override
    protected boolean isAnswered() {
        return !answered.isEmpty();
    }

    @Override
    protected void dropAll() {
        came().forEach(SocketListener.Client::close);
        came().clear();
        dropAnswered();
    }

    private void dropAnswered() {
        if (recovery != null) {
            recovery.close(false);
            recovery = null;
        }
        answered.forEach(SocketListener.Client::close);
        answered = List.of();
        confirmation.clear();
        isAsked = false;
    }

    @Override
    protected @Nullable FrameReceiver accept() {
        try {
            if (isComplete()) {
                // Drops the streams of an earlier attempt that the client has abandoned.
                dropAnswered();
                answer();
            }
            return isConfirmed() ? receiver() : null;
        } catch (IOException e) {
            LOG.info("{}: the peer {} left while it was accepted, and is expected again: {}", this,
                    isAnswered() ? answered.getFirst() : came().getFirst(), e.getMessage());
            dropAll();
            return null;
        }
    }

    private void answer() throws IOException {
        List<SocketListener.Client> streams = new ArrayList<>(came());
        streams.sort(Comparator.comparingInt(stream -> stream.hello().stream()));
        recovery = recovery(streams);
        for (SocketListener.Client stream : streams) {
            stream.accept(reconnector);
        }
        answered = streams;
        came().clear();
    }

    /**
     * Returns whether the client has confirmed its connection. If the first stream is lost before the confirmation
     * arrives, this process asks the client's process about the connection. The client's answer to this request counts
     * as a confirmation. A request of the client's process to restore another stream counts, too. Without any
     * confirmation, the client starts its connection attempt again.
     *
     * @throws IOException if the client can no longer confirm
     */
    private boolean isConfirmed() throws IOException {
        String end = recovery == null ? null : recovery.end();
        if (recovery != null && (recovery.isHeard() || end != null && recovery.isClosedThere())) {
            return true;
        }
        if (end != null) {
            throw new IOException(end);
        }
        try {
            if (!isAsked && answered.getFirst().channel().read(confirmation) < 0) {
                throw new EOFException("it closed the connection before it read that it was accepted");
            }
        } catch (IOException e) {
            if (recovery == null) {
                throw e;
            }
            isAsked = true;
            recovery.lost(0, answered.size() == 1);
        }
        if (confirmation.hasRemaining()) {
            return false;
        }
        if (!StreamHello.FORMAT.isBegunBy(confirmation)
                || HandshakeReply.decode(confirmation) != HandshakeReply.ACCEPTED) {
            throw new ProtocolException("it sent something else than the confirmation that it was accepted");
        }
        if (recovery != null) {
            recovery.heard();
        }
        return true;
    }

    private FrameReceiver receiver() throws IOException {
        SocketListener.Client first = answered.getFirst();
        StreamHello hello = first.hello();
        SocketChannel[] channels = new SocketChannel[answered.size()];
        Rail[] rails = new Rail[channels.length];
        for (int i = 0; i < channels.length; i++) {
            channels[i] = answered.get(i).channel();
            Rail rail = answered.get(i).rail();
            rails[i] = i > 0 && rails[i - 1].number() == rail.number() ? rails[i - 1] : rail;
        }
        String peer = first.process();
        String name = "socket connection " + key() + " from " + first + ", " + peer
                + StreamSet.count(hello.rails(), hello.streams());
        StreamSet set = new StreamSet(network, name, peer, channels, recovery);
        FrameReceiver receiver =
                new SocketReceiver(set, rails, Pieces.over(hello.streams(), hello.threshold(), hello.window()));
        network.opened(set, receiver::close);
        return receiver;
    }

    /**
     * Creates the object that restores lost streams of this connection; null if this process or the client does not
     * restore lost streams. Called before the client is answered, because the client may lose a stream right after the
     * answer.
     */
    private @Nullable StreamRecovery recovery(List<SocketListener.Client> streams) throws IOException {
        SocketListener.Client first = streams.getFirst();
        if (reconnector == null || StreamHello.resumePort(first.resume()) == 0) {
            return null;
        }
        StreamRecovery.Peer[] peers = new StreamRecovery.Peer[streams.size()];
        for (int i = 0; i < peers.length; i++) {
            peers[i] = streams.get(i).peer(first.hello().rails() > 1);
        }
        return new StreamRecovery(reconnector, new ResumeFormat.Id(key(), first.hello().attempt(), true),
                StreamHello.resumeSecret(first.resume()), peers);
    }
}
