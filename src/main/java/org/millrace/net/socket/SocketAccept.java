package org.millrace.net.socket;

import java.io.IOException;
import java.nio.channels.SocketChannel;
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

/** A connection that a listener expects: the streams that came for it so far, all of one client. */
final class SocketAccept extends ExpectedConnection<SocketListener.Client> {

    private static final Logger LOG = LogManager.getLogger(SocketAccept.class);

    private final OpenResources network;
    private final @Nullable Reconnector reconnector;

    /** @param reconnector makes lost streams again; null if nobody does */
    SocketAccept(KeyedListener<SocketListener.Client> listener, OpenResources network, ConnectionKey key,
            @Nullable Reconnector reconnector) {
        super(listener, key);
        this.network = network;
        this.reconnector = reconnector;
    }

    @Override
    protected void check(SocketListener.Client stream) throws Refusal {
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
    protected void dropAll() {
        came().forEach(SocketListener.Client::close);
        came().clear();
    }

    /** A client whose stream breaks before it has its answer begins anew, and the network may be cut here. */
    @Override
    protected @Nullable FrameReceiver accept() {
        List<SocketListener.Client> streams = came();
        streams.sort(Comparator.comparingInt(stream -> stream.hello().stream()));
        SocketListener.Client first = streams.getFirst();
        StreamHello hello = first.hello();
        SocketChannel[] channels = new SocketChannel[streams.size()];
        Rail[] rails = new Rail[streams.size()];
        StreamRecovery recovery = null;
        String peer;
        try {
            peer = first.process();
            recovery = recovery(streams);
            for (int i = 0; i < channels.length; i++) {
                SocketListener.Client stream = streams.get(i);
                channels[i] = stream.channel();
                stream.accept(reconnector);
                Rail rail = stream.rail();
                rails[i] = i > 0 && rails[i - 1].number() == rail.number() ? rails[i - 1] : rail;
            }
        } catch (IOException e) {
            if (recovery != null) {
                recovery.close(false);
            }
            dropAll();
            LOG.info("{}: the peer {} left while it was accepted, and is expected again: {}", this, first,
                    e.getMessage());
            return null;
        }
        String name = "socket connection " + key() + " from " + first + ", " + peer
                + StreamSet.count(hello.rails(), hello.streams());
        StreamSet set = new StreamSet(network, name, peer, channels, recovery);
        FrameReceiver receiver =
                new SocketReceiver(set, rails, Pieces.over(hello.streams(), hello.threshold(), hello.window()));
        network.opened(set, receiver::close);
        return receiver;
    }

    /** Before the client is answered, as it may lose a stream at once. */
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
