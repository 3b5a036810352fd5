package org.millrace.net.connection;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.security.MessageDigest;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionKey;
import org.millrace.net.connection.HandshakeReply.Refusal;

/**
 * A client of a listener, from its arrival until it is part of a connection. Received data is checked before any use.
 * Guarded by the listener's lock.
 */
public abstract class IncomingHello {

    private final SocketChannel channel;
    private final HelloFormat format;
    private final String peer;
    private final long deadline;
    private final ByteBuffer received;
    private @Nullable ConnectionKey key;

    /**
     * Creates a client. The client owns the non-blocking channel from now on.
     *
     * @param deadline time, by the listener's clock, until which the client must be part of a connection
     */
    protected IncomingHello(SocketChannel channel, HelloFormat format, String peer, long deadline) {
        this.channel = channel;
        this.format = format;
        this.peer = peer;
        this.deadline = deadline;
        received = ByteBuffer.allocate(format.bytes()).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Creates a client that owns a non-blocking TCP stream. The remote address serves as the client's name. */
    protected IncomingHello(SocketChannel channel, HelloFormat format, long deadline) throws IOException {
        this(channel, format, channel.getRemoteAddress().toString().replaceFirst("^/", ""), deadline);
    }

    /** Describes the process at the other end of the TCP stream by its ID and its address. */
    protected final String process(long pid) throws IOException {
        return "pid " + pid + " on " + ((InetSocketAddress) channel.getRemoteAddress()).getAddress().getHostAddress();
    }

    /**
     * Reads more bytes of the hello.
     *
     * @return whether the hello is complete and contains the listener's secret
     * @throws Refusal if the client cannot be a peer
     */
    final boolean read(byte[] secret) throws Refusal {
        int read;
        try {
            read = channel.read(received);
        } catch (ProtocolException e) {
            throw new Refusal(null, "it " + e.getMessage());
        } catch (IOException e) {
            throw new Refusal(null, "it failed before its hello was complete: " + e.getMessage());
        }
        if (!format.isBegunBy(received)) {
            throw new Refusal(null, "it speaks another protocol: it sent '"
                    + HelloFormat.excerpt(received.duplicate().flip()) + "'" + ForeignProtocol.suffix(received));
        }
        if (received.position() >= HelloFormat.COMMON_BYTES && HelloFormat.versionIn(received) != format.version()) {
            throw new Refusal(HandshakeReply.OTHER_VERSION,
                    "it uses version " + HelloFormat.versionIn(received) + ", this side version " + format.version());
        }
        if (received.hasRemaining()) {
            if (read < 0) {
                throw new Refusal(null,
                        "it closed after " + received.position() + " of the " + format.bytes() + " bytes of a hello");
            }
            return false;
        }
        // The comparison takes constant time, because its duration must not reveal which part of a guess is right.
        if (!MessageDigest.isEqual(HelloFormat.secretIn(received), secret)) {
            throw new Refusal(HandshakeReply.WRONG_SECRET, "it does not know this listener's secret");
        }
        decode(received);
        key = HelloFormat.keyIn(received);
        return true;
    }

    /** Reads and checks the network's part of the hello. */
    protected abstract void decode(ByteBuffer hello) throws Refusal;

    /** Throws a {@link Refusal} if the client has closed its stream, or has sent more data before the reply. */
    public final void checkWaits() throws Refusal {
        try {
            int read = channel.read(received.clear().limit(1));
            if (read != 0) {
                throw new Refusal(read < 0 ? null : HandshakeReply.MALFORMED,
                        read < 0 ? "it left while its connection was being made"
                                : "it sent more before it was answered");
            }
        } catch (IOException e) {
            throw new Refusal(null, "it failed while its connection was being made: " + e.getMessage());
        }
    }

    /** Returns whether the client has proven before its hello that it knows the ranks' secret. */
    final boolean knowsSecret() {
        return channel instanceof TlsChannel tls && tls.isChallengePassed();
    }

    /** Returns the key of the requested connection. The hello must be complete. */
    final ConnectionKey key() {
        return Objects.requireNonNull(key);
    }

    final boolean isLate(long now) {
        return now - deadline > 0;
    }

    public final SocketChannel channel() {
        return channel;
    }

    /**
     * Sends a reply. The operating system always accepts the whole reply, because it is the first data on the stream.
     */
    public final void reply(HandshakeReply reply) throws IOException {
        channel.write(reply.encode(format));
    }

    /**
     * Sends the reply of a refusal if the refusal has a reply, and closes the channel. A client that is not a peer
     * receives no reply.
     */
    public final void refuse(Refusal why) {
        try {
            HandshakeReply reply = why.reply();
            if (reply != null) {
                reply(reply);
            }
        } catch (IOException gone) {
            // The client left before the reply.
        }
        close();
    }

    public final void close() {
        ConnectionState.closeQuietly(channel);
    }

    @Override
    public final String toString() {
        return peer;
    }
}
