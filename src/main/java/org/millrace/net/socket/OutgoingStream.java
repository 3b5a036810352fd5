package org.millrace.net.socket;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NoRouteToHostException;
import java.net.ProtocolException;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.SystemError;
import org.millrace.net.ConnectionException;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.HandshakeReply.Unanswered;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.HelloFormat;

/** A TCP stream to a listener, from the call of connect until the listener's reply has arrived. */
public final class OutgoingStream {

    /** Reports that the listener's host is unreachable, possibly only for a short time. */
    static final class NoRouteException extends ConnectionException {

        private static final long serialVersionUID = 1L;

        private NoRouteException(String message, IOException cause) {
            super(message, cause);
        }
    }

    private final String listener;
    private final String host;
    private final SocketChannel channel;
    private final HelloFormat format;
    private final ByteBuffer hello;
    private final ByteBuffer received = ByteBuffer.allocate(HandshakeReply.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private String waitingFor = "the TCP connection";
    private boolean connected;
    private boolean accepted;

    /** @param from local address of the stream; null lets the system choose */
    public OutgoingStream(@Nullable InetAddress from, InetSocketAddress to, HelloFormat format, ByteBuffer hello,
            SocketOptions options) {
        this.format = format;
        listener = name(to);
        host = to.getAddress().getHostAddress();
        this.hello = hello;
        SocketChannel opened = null;
        try {
            opened = SocketChannel.open(to.getAddress().getAddress().length == 4 ? StandardProtocolFamily.INET
                    : StandardProtocolFamily.INET6);
            StreamSet.configure(opened, options);
            if (options.receiveBufferBytes() > 0) {
                opened.setOption(StandardSocketOptions.SO_RCVBUF, options.receiveBufferBytes());
            }
            if (from != null) {
                opened.bind(new InetSocketAddress(from, 0));
            }
            opened.connect(to);
            opened = options.tls() == null ? opened : options.tls().client(opened, HelloFormat.secretIn(hello));
        } catch (IOException e) {
            ConnectionState.closeQuietly(opened);
            throw unreachable(e);
        }
        channel = opened;
    }

    public static String name(InetSocketAddress address) {
        return "port " + address.getPort() + " of " + address.getAddress().getHostAddress();
    }

    /** Continues the handshake without waiting. Returns true when the listener has accepted this stream. */
    public boolean advance() {
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
                // A TLS channel accepts no byte before its handshake is complete.
                waitingFor = hello.hasRemaining() ? "the TLS handshake" : "the listener's answer";
            }
            int read = channel.read(received);
            accepted = HandshakeReply.accepts(listener, format, received, read < 0);
        } catch (ProtocolException e) {
            throw new ConnectionException(listener + " " + e.getMessage() + HandshakeReply.OTHER_PROGRAM, e);
        } catch (SSLException e) {
            throw new ConnectionException(broken(e), e);
        } catch (IOException e) {
            throw new Unanswered(broken(e), e);
        }
        return accepted;
    }

    /**
     * Reads data that the listener sends behind its reply, without waiting. Returns true when the buffer is full.
     *
     * @param what description of the data, for messages
     */
    public boolean receive(ByteBuffer answer, String what) {
        try {
            int read = channel.read(answer);
            if (answer.hasRemaining() && read < 0) {
                throw new ConnectionException("the listener closed the connection after " + answer.position() + " of "
                        + answer.limit() + " bytes of " + what + "; its process ended");
            }
            return !answer.hasRemaining();
        } catch (IOException e) {
            throw new Unanswered(
                    "the listener broke the connection while it was asked for " + what + ": " + e.getMessage(), e);
        }
    }

    private String broken(IOException cause) {
        return listener + " broke the connection during the handshake: " + cause.getMessage()
                + "; it is not a listener of Millrace, or its process ended";
    }

    private ConnectionException unreachable(IOException cause) {
        String what = "cannot connect to " + listener + ": " + cause.getMessage()
                + "; is its process alive, does it announce an address that this host can reach (NCCL_SOCKET_IFNAME), "
                + "and does a firewall let it through?";
        return cause instanceof NoRouteToHostException || SystemError.NETWORK_UNREACHABLE.isReasonOf(cause)
                || SystemError.TIMED_OUT.isReasonOf(cause) ? new NoRouteException(what, cause)
                        : new ConnectionException(what, cause);
    }

    boolean isAccepted() {
        return accepted;
    }

    public String process() {
        return "pid " + HandshakeReply.pidIn(received) + " on " + host;
    }

    /** Returns whether the TCP connection is established. The process at its other end is not known yet. */
    public boolean isConnected() {
        return connected;
    }

    /**
     * Describes the event that this stream waits for. The description is a part of the message about a passed deadline.
     */
    public String waitingFor() {
        return waitingFor;
    }

    public SocketChannel channel() {
        return channel;
    }

    public void close() {
        ConnectionState.closeQuietly(channel);
    }
}
