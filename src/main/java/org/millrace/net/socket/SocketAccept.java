package org.millrace.net.socket;

import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.util.Comparator;
import java.util.List;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.connection.ExpectedConnection;
import org.millrace.net.connection.HandshakeReply.Refusal;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.KeyedListener;
import org.millrace.net.connection.OpenResources;

/** A connection that a listener expects: the streams that came for it so far, all of one client. */
final class SocketAccept extends ExpectedConnection<SocketListener.Client> {

    private final OpenResources network;
    private final SocketOptions options;

    SocketAccept(KeyedListener<SocketListener.Client> listener, OpenResources network, SocketOptions options,
            ConnectionKey key) {
        super(listener, key);
        this.network = network;
        this.options = options;
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

    @Override
    protected FrameReceiver accept() {
        List<SocketListener.Client> streams = came();
        streams.sort(Comparator.comparingInt(stream -> stream.hello().stream()));
        SocketListener.Client first = streams.getFirst();
        SocketChannel[] channels = new SocketChannel[streams.size()];
        Rail[] rails = new Rail[streams.size()];
        String peer;
        try {
            peer = first.process();
            for (int i = 0; i < channels.length; i++) {
                SocketListener.Client stream = streams.get(i);
                channels[i] = stream.channel();
                stream.reply(HandshakeReply.ACCEPTED);
                Rail rail = stream.rail();
                rails[i] = i > 0 && rails[i - 1].number() == rail.number() ? rails[i - 1] : rail;
            }
        } catch (IOException e) {
            dropAll();
            throw new ConnectionException(
                    this + ": the peer " + first + " left while it was accepted: " + e.getMessage(), e);
        }
        StreamHello hello = first.hello();
        String name = "socket connection " + key() + " from " + first + ", " + peer;
        FrameReceiver receiver;
        StreamSet set;
        if (hello.rails() > 1) {
            set = new StreamSet(network, name + " (" + hello.rails() + " rails)", peer, channels);
            receiver = new RailReceiver(set, rails, Pieces.of(hello.threshold(), hello.window()), hello.window());
        } else {
            set = new StreamSet(network, name + (channels.length == 1 ? "" : " (" + channels.length + " streams)"),
                    peer, channels);
            receiver =
                    new StripedReceiver(set, new Stripes(channels.length, hello.threshold()), options.framesInFlight());
        }
        network.opened(set, receiver::close);
        return receiver;
    }
}
