package org.millrace.net.socket.handshake;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.security.MessageDigest;
import java.util.List;
import org.millrace.net.base.Excerpt;
import org.millrace.net.base.HandshakeException;
import org.millrace.net.base.HandshakeReply;
import org.millrace.net.socket.rails.Rail;
import org.millrace.net.socket.stream.StreamSet;

/**
 * One TCP stream that somebody opened to a listener, until it is part of a connection. Nothing it says is believed
 * before it is checked.
 */
public final class IncomingStream {

    private final SocketChannel channel;
    private final String peer;
    private final long deadline;
    private final ByteBuffer received = ByteBuffer.allocate(StreamHello.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private StreamHello hello;

    /**
     * Takes a stream over.
     *
     * @param deadline by {@link System#nanoTime}: when it must be part of a connection
     */
    IncomingStream(SocketChannel channel, SocketAddress peer, long deadline) {
        this.channel = channel;
        this.peer = peer.toString().replaceFirst("^/", "");
        this.deadline = deadline;
    }

    /**
     * Reads on.
     *
     * @param secret the listener's
     * @return whether the hello is here, and of somebody who knows the secret
     * @throws HandshakeException if this is no peer
     */
    boolean readHello(byte[] secret) throws HandshakeException {
        int read;
        try {
            read = channel.read(received);
        } catch (IOException e) {
            throw new HandshakeException(null, "it failed before its hello was complete: " + e.getMessage());
        }
        if (!StreamHello.beginsWithMagic(received)) {
            throw new HandshakeException(null,
                    "it speaks another protocol: it said '" + Excerpt.of(received.duplicate().flip()) + "'");
        }
        if (received.position() >= StreamHello.COMMON_BYTES && StreamHello.version(received) != StreamHello.VERSION) {
            throw new HandshakeException(HandshakeReply.OTHER_VERSION, "it speaks version "
                    + StreamHello.version(received) + ", this side version " + StreamHello.VERSION);
        }
        if (received.hasRemaining()) {
            if (read < 0) {
                throw new HandshakeException(null, "it closed after " + received.position() + " of the "
                        + StreamHello.BYTES + " bytes of a hello");
            }
            return false;
        }
        hello = StreamHello.decode(received);
        check(secret);
        return true;
    }

    private void check(byte[] secret) throws HandshakeException {
        if (!MessageDigest.isEqual(secret, hello.secret())) {
            throw new HandshakeException(HandshakeReply.WRONG_SECRET, "it does not know this listener's secret");
        }
        if (!hello.isPlausible()) {
            throw new HandshakeException(HandshakeReply.MALFORMED,
                    "it says that it is stream " + hello.stream() + " of " + hello.streams()
                            + " with a stripe threshold of " + hello.threshold() + ", on rail " + hello.rail() + " of "
                            + hello.rails() + ", with a window of " + hello.window() + " frames");
        }
    }

    /** Notices that the other side left, or talks before it was answered. */
    void checkWaits() throws HandshakeException {
        try {
            int read = channel.read(received.clear().limit(1));
            if (read != 0) {
                throw new HandshakeException(read < 0 ? null : HandshakeReply.MALFORMED,
                        read < 0 ? "it left while its connection was being made" : "it went on before it was answered");
            }
        } catch (IOException e) {
            throw new HandshakeException(null, "it failed while its connection was being made: " + e.getMessage());
        }
    }

    boolean isLate(long now) {
        return now - deadline > 0;
    }

    StreamHello hello() {
        return hello;
    }

    SocketChannel channel() {
        return channel;
    }

    /** Sends an answer: it always fits, as it is the first thing that is sent. */
    void answer(HandshakeReply answer) throws IOException {
        channel.write(answer.encode());
    }

    /** Tells the listener's addresses: they fit too. */
    void tell(List<InetSocketAddress> addresses) throws IOException {
        answer(HandshakeReply.ACCEPTED);
        channel.write(RailList.encode(addresses));
    }

    /** The rail that this stream is of. */
    Rail rail() throws IOException {
        InetSocketAddress local = (InetSocketAddress) channel.getLocalAddress();
        return new Rail(hello.rail(), peer + " to " + local.getAddress().getHostAddress());
    }

    void close() {
        StreamSet.closeAll(new SocketChannel[] {channel});
    }

    @Override
    public String toString() {
        return peer;
    }
}
