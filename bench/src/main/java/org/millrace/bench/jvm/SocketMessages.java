package org.millrace.bench.jvm;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

/** Messages over a channel of the JDK, on loopback. With the property {@code poll} the thread polls the channel. */
public final class SocketMessages implements Messages {

    private final MemorySegment sent = Arena.global().allocate(JvmRank.LARGEST_TRIP, 64);
    private final MemorySegment received = Arena.global().allocate(JvmRank.LARGEST_TRIP, 64);
    private final ByteBuffer outgoing = sent.asByteBuffer();
    private final ByteBuffer incoming = received.asByteBuffer();
    private final SocketChannel channel;

    /**
     * Connects the two ranks.
     *
     * @param meeting place of the ranks
     * @throws IOException if there is no connection
     */
    public SocketMessages(Meeting meeting) throws IOException {
        InetAddress loopback = InetAddress.getLoopbackAddress();
        if (meeting.rank() == 0) {
            try (ServerSocketChannel server = ServerSocketChannel.open()) {
                server.bind(new InetSocketAddress(loopback, 0));
                meeting.tellPort(((InetSocketAddress) server.getLocalAddress()).getPort());
                channel = server.accept();
            }
        } else {
            channel = SocketChannel.open(new InetSocketAddress(loopback, meeting.awaitPort()));
        }
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        channel.configureBlocking(!Boolean.getBoolean("poll"));
    }

    @Override
    public MemorySegment sent() {
        return sent;
    }

    @Override
    public MemorySegment received() {
        return received;
    }

    @Override
    public void send(int bytes) throws IOException {
        outgoing.clear().limit(bytes);
        while (outgoing.hasRemaining()) {
            channel.write(outgoing);
        }
    }

    @Override
    public void receive(int bytes) throws IOException {
        incoming.clear().limit(bytes);
        while (incoming.hasRemaining()) {
            if (channel.read(incoming) < 0) {
                throw new EOFException("the other rank has closed its connection");
            }
        }
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
