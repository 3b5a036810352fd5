package org.millrace.net.socket.handshake;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import org.millrace.net.ConnectionException;
import org.millrace.net.base.Excerpt;
import org.millrace.net.base.HandshakeReply;
import org.millrace.net.socket.stream.ChannelSetup;
import org.millrace.net.socket.stream.SocketOptions;
import org.millrace.net.socket.stream.StreamSet;

/** One TCP stream to a listener, from the call of connect to the listener's answer. */
final class OutgoingStream {

    private final String listener;
    private final SocketChannel channel;
    private final ByteBuffer hello;
    private final ByteBuffer received = ByteBuffer.allocate(HandshakeReply.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private String waitingFor = "the TCP connection";
    private boolean connected;
    private boolean accepted;
    private HandshakeReply answer;

    /**
     * Begins to connect.
     *
     * @param from the address on this side; null to leave it to the system
     */
    OutgoingStream(InetAddress from, InetSocketAddress to, StreamHello hello, SocketOptions options) {
        listener = name(to);
        this.hello = hello.encode();
        SocketChannel opened = null;
        try {
            opened = SocketChannel.open(to.getAddress().getAddress().length == 4 ? StandardProtocolFamily.INET
                    : StandardProtocolFamily.INET6);
            ChannelSetup.apply(opened, options);
            if (options.receiveBufferBytes() > 0) {
                opened.setOption(StandardSocketOptions.SO_RCVBUF, options.receiveBufferBytes());
            }
            if (from != null) {
                opened.bind(new InetSocketAddress(from, 0));
            }
            opened.connect(to);
        } catch (IOException e) {
            StreamSet.closeAll(new SocketChannel[] {opened});
            throw unreachable(e);
        }
        channel = opened;
    }

    static String name(InetSocketAddress address) {
        return "port " + address.getPort() + " of " + address.getAddress().getHostAddress();
    }

    /** Goes on; true once the listener has accepted this stream. */
    boolean advance() {
        if (accepted) {
            return true;
        }
        try {
            connected = channel.finishConnect();
            if (!connected) {
                return false;
            }
        } catch (IOException e) {
            throw unreachable(e);
        }
        try {
            if (hello.hasRemaining()) {
                channel.write(hello);
                waitingFor = "the listener's answer";
            }
            int read = channel.read(received);
            judge(read < 0);
        } catch (IOException e) {
            throw new ConnectionException(listener + " broke the connection during the handshake: " + e.getMessage()
                    + "; it is no listener of Millrace's, or its process ended", e);
        }
        return accepted;
    }

    private void judge(boolean ended) {
        if (!StreamHello.beginsWithMagic(received)) {
            throw new ConnectionException(listener + " speaks another protocol: got '"
                    + Excerpt.of(received.duplicate().flip())
                    + "'; the listener's process ended and its port is used by another program, or something between answers for it");
        }
        if (received.hasRemaining()) {
            if (ended) {
                throw new ConnectionException(listener + " closed the connection during the handshake, after "
                        + received.position() + " of " + HandshakeReply.BYTES
                        + " bytes of an answer; it is no listener of Millrace's, or its process ended");
            }
            return;
        }
        answer = HandshakeReply.decode(received);
        accepted = answer == HandshakeReply.ACCEPTED;
        if (!accepted) {
            throw new ConnectionException(listener + " refused the connection: "
                    + (answer == null ? "for a reason of a later version's" : answer.text()) + " (its version "
                    + StreamHello.version(received) + ", ours " + StreamHello.VERSION + ")");
        }
    }

    private ConnectionException unreachable(IOException cause) {
        return new ConnectionException("cannot connect to " + listener + ": " + cause.getMessage()
                + "; is its process alive, does it announce an address that this host can reach (NCCL_SOCKET_IFNAME), "
                + "and does a firewall let it through?", cause);
    }

    boolean isAccepted() {
        return accepted;
    }

    /** Whether there is a TCP connection, whatever is at its other end. */
    boolean isConnected() {
        return connected;
    }

    /** What the listener answered; null if it has not, or something that is not known here. */
    HandshakeReply answer() {
        return answer;
    }

    /** What this stream waits for, for the message when the deadline has passed. */
    String waitingFor() {
        return waitingFor;
    }

    SocketChannel channel() {
        return channel;
    }

    void close() {
        StreamSet.closeAll(new SocketChannel[] {channel});
    }
}
