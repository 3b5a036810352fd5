package org.millrace.net.socket.handshake;

import java.io.IOException;
import java.nio.channels.SocketChannel;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.Pending;
import org.millrace.net.base.DropLog;
import org.millrace.net.base.HandshakeException;
import org.millrace.net.base.HandshakeReply;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.rails.Pieces;
import org.millrace.net.socket.rails.Rail;
import org.millrace.net.socket.rails.RailReceiver;
import org.millrace.net.socket.stream.StreamSet;
import org.millrace.net.socket.stripes.StripedReceiver;
import org.millrace.net.socket.stripes.Stripes;

/**
 * A connection that a listener expects: the streams that came for it so far, all of one client. Guarded by its
 * listener.
 */
final class SocketAccept implements Pending<FrameReceiver> {

    private final SocketListener listener;
    private final SocketNetwork network;
    private final ConnectionKey key;
    /** By stream number; null while no client has come. */
    private IncomingStream[] streams;
    private int missing;
    /** What became of it; null while it is expected. */
    private String end;

    SocketAccept(SocketListener listener, SocketNetwork network, ConnectionKey key) {
        this.listener = listener;
        this.network = network;
        this.key = key;
    }

    /** Takes a stream that came with this key. */
    void add(IncomingStream stream) throws HandshakeException {
        StreamHello hello = stream.hello();
        if (streams == null) {
            streams = new IncomingStream[hello.streams()];
            missing = streams.length;
        } else {
            StreamHello first = anyStream().hello();
            if (hello.attempt() != first.attempt()) {
                throw new HandshakeException(HandshakeReply.KEY_TAKEN, "another client is connecting with key " + key);
            }
            if (hello.streams() != first.streams() || hello.threshold() != first.threshold()
                    || hello.rails() != first.rails() || hello.window() != first.window()
                    || streams[hello.stream()] != null) {
                throw new HandshakeException(HandshakeReply.MALFORMED,
                        "it contradicts the other streams of key " + key);
            }
        }
        streams[hello.stream()] = stream;
        missing--;
    }

    boolean isComplete() {
        return streams != null && missing == 0;
    }

    /** Makes room for another client if one of the streams is gone before all came. */
    void dropDeparted(DropLog drops) {
        if (streams == null) {
            return;
        }
        try {
            for (IncomingStream stream : streams) {
                if (stream != null) {
                    stream.checkWaits();
                }
            }
        } catch (HandshakeException e) {
            drops.dropped(anyStream(), e.getMessage());
            closeStreams();
        }
    }

    private IncomingStream anyStream() {
        for (IncomingStream stream : streams) {
            if (stream != null) {
                return stream;
            }
        }
        throw new IllegalStateException("a client came, but none of its streams is here");
    }

    private void closeStreams() {
        for (IncomingStream stream : streams) {
            if (stream != null) {
                stream.close();
            }
        }
        streams = null;
    }

    @Override
    public FrameReceiver poll() {
        synchronized (listener) {
            if (end != null) {
                throw new ConnectionException(this + ": " + end);
            }
            if (!isComplete()) {
                listener.advance();
            }
            if (!isComplete()) {
                return null;
            }
            end = "was returned before";
            listener.forget(key);
            return connect();
        }
    }

    private FrameReceiver connect() {
        SocketChannel[] channels = new SocketChannel[streams.length];
        try {
            for (int i = 0; i < channels.length; i++) {
                channels[i] = streams[i].channel();
                streams[i].answer(HandshakeReply.ACCEPTED);
            }
        } catch (IOException e) {
            closeStreams();
            throw new ConnectionException(
                    this + ": the peer " + streams[0] + " left while it was accepted: " + e.getMessage(), e);
        }
        StreamHello hello = streams[0].hello();
        String name = "socket connection " + key + " from " + streams[0];
        return hello.rails() > 1 ? overRails(name, channels, hello) : overOne(name, channels, hello);
    }

    private FrameReceiver overRails(String name, SocketChannel[] channels, StreamHello hello) {
        Rail[] rails = new Rail[streams.length];
        try {
            for (int i = 0; i < rails.length; i++) {
                Rail rail = streams[i].rail();
                rails[i] = i > 0 && rails[i - 1].number() == rail.number() ? rails[i - 1] : rail;
            }
        } catch (IOException e) {
            closeStreams();
            throw new ConnectionException(
                    this + ": the peer " + streams[0] + " left while it was accepted: " + e.getMessage(), e);
        }
        RailReceiver receiver =
                new RailReceiver(network, new StreamSet(name + " (" + hello.rails() + " rails)", channels), rails,
                        Pieces.of(hello.threshold(), hello.window()), hello.window());
        network.opened(receiver, receiver::close);
        return receiver;
    }

    private FrameReceiver overOne(String peer, SocketChannel[] channels, StreamHello hello) {
        String name = peer + (channels.length == 1 ? "" : " (" + channels.length + " streams)");
        StripedReceiver receiver = new StripedReceiver(network, new StreamSet(name, channels),
                new Stripes(channels.length, hello.threshold()), network.options().framesInFlight());
        network.opened(receiver, receiver::close);
        return receiver;
    }

    @Override
    public void close() {
        end("was given up");
    }

    void end(String how) {
        synchronized (listener) {
            if (end == null) {
                end = how;
                listener.forget(key);
                if (streams != null) {
                    closeStreams();
                }
            }
        }
    }

    @Override
    public String toString() {
        return "socket connection " + key + " expected by " + listener;
    }
}
