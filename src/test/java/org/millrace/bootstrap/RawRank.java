package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.locks.LockSupport;
import org.millrace.bootstrap.Message.Challenge;
import org.millrace.bootstrap.Message.Hello;
import org.millrace.bootstrap.Message.Proof;

/** A rank that sends only the messages that the test chooses. */
final class RawRank implements AutoCloseable {

    private final SocketChannel channel;
    private final Selector selector = Selector.open();
    private final ControlConnection connection;
    private final Queue<Message> received = new ArrayDeque<>();
    /** Exception that ended the connection. It is thrown after all received messages were returned. */
    private IOException ended;

    private FrameSeal seal;

    private RawRank(InetSocketAddress address) throws IOException {
        channel = SocketChannel.open(address);
        connection = new ControlConnection(channel, selector);
        connection.trust(RankIdentity.local(0, ""));
    }

    /** Connects to rank 0, which may not exist yet. Sends nothing. */
    static RawRank connect(Rendezvous rendezvous) {
        long end = System.nanoTime() + Ranks.TIMEOUT.toNanos();
        while (true) {
            try {
                return new RawRank(rendezvous.find(0).address());
            } catch (IOException e) {
                if (System.nanoTime() - end > 0) {
                    fail("rank 0 has not come", e);
                }
                LockSupport.parkNanos(1_000_000);
            }
        }
    }

    static RawRank connect(String rendezvous) {
        return connect(Rendezvous.parse(rendezvous, JoinOptions.within(Ranks.TIMEOUT)));
    }

    /**
     * Connects and introduces itself as the given rank. {@link #receive()} then returns the acceptance or the refusal.
     */
    static RawRank introduced(String rendezvous, int rank, int size) throws IOException {
        return introduced(rendezvous, JoinOptions.within(Ranks.TIMEOUT), rank, size);
    }

    static RawRank introduced(String rendezvous, JoinOptions options, int rank, int size) throws IOException {
        Rendezvous parsed = Rendezvous.parse(rendezvous, options);
        RawRank raw = connect(parsed);
        Hello hello = new Hello(new RankIdentity(rank, 4242, "raw-host"), size, Secret.randomBytes());
        raw.say(hello);
        Challenge challenge = (Challenge) raw.receive();
        Secret secret = parsed.find(0).secret();
        RankIdentity zero = challenge.identity();
        raw.say(new Proof(secret.proof(Secret.Side.MEMBER, hello, zero, challenge.nonce())));
        raw.seal = secret.seal(Secret.Side.MEMBER, hello, zero, challenge.nonce());
        if (Secret.same(secret.proof(Secret.Side.COORDINATOR, hello, zero, challenge.nonce()), challenge.proof())) {
            raw.connection.sealIncoming(secret.seal(Secret.Side.COORDINATOR, hello, zero, challenge.nonce()));
        }
        return raw;
    }

    void say(Message message) throws IOException {
        send(seal == null ? MessageCodec.encode(message) : seal.sealed(MessageCodec.encode(message)));
    }

    void send(ByteBuffer bytes) throws IOException {
        while (bytes.hasRemaining()) {
            channel.write(bytes);
        }
    }

    /** Returns the next message. */
    Message receive() throws IOException {
        long end = System.nanoTime() + Ranks.TIMEOUT.toNanos();
        while (received.isEmpty()) {
            if (ended != null) {
                throw ended;
            }
            if (System.nanoTime() - end > 0) {
                fail("rank 0 says nothing");
            }
            selector.select(1000);
            selector.selectedKeys().clear();
            try {
                connection.serve(received::add);
            } catch (IOException e) {
                ended = e;
            }
        }
        return received.remove();
    }

    <T extends Message> T receive(Class<T> type) throws IOException {
        while (true) {
            Message message = receive();
            if (type.isInstance(message)) {
                return type.cast(message);
            }
        }
    }

    /** Reads until rank 0 has closed the connection or reset it. */
    void awaitEnd() {
        try {
            while (true) {
                receive();
            }
        } catch (IOException e) {
            close();
        }
    }

    /**
     * Closes the sending direction, so that rank 0 does not wait for the rest of a message. Waits until rank 0 has
     * closed the connection.
     */
    void awaitEndOrLeave() throws IOException {
        connection.finish();
        selector.select(1000);
        channel.shutdownOutput();
        awaitEnd();
    }

    /** Resets the connection, as Linux does if a process is killed while data is unread. */
    void reset() throws IOException {
        channel.setOption(StandardSocketOptions.SO_LINGER, 0);
        close();
    }

    @Override
    public void close() {
        try {
            channel.close();
            selector.close();
        } catch (IOException e) {
            fail(e);
        }
    }
}
