package org.millrace.net.socket;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.BitSet;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.OpenResources;

/**
 * Both ends of a connection over several rails with one stream each, and a relay between them. The relay carries as
 * many bytes per rail as a test requests, and cuts rails on request. Everything runs in the test's thread, so that a
 * run depends only on its seed. The socket buffers are small and hold little. The test sets the sender's clock.
 */
final class RelayedRails implements AutoCloseable {

    private static final int KERNEL_BYTES = 32 << 10;

    private final OpenResources open = new OpenResources("network under test");
    private final BitSet regionIds = new BitSet();
    final SocketSender sender;
    final SocketReceiver receiver;
    long nanos;
    private final Leg[] legs;

    RelayedRails(int rails, int threshold, int framesInFlight) throws IOException {
        SocketChannel[] senders = new SocketChannel[rails];
        SocketChannel[] receivers = new SocketChannel[rails];
        Rail[] names = new Rail[rails];
        legs = new Leg[rails];
        for (int i = 0; i < rails; i++) {
            SocketChannel[] near = pair();
            SocketChannel[] far = pair();
            senders[i] = near[0];
            receivers[i] = far[1];
            legs[i] = new Leg(near[1], far[0]);
            names[i] = new Rail(i, "relay " + i);
        }
        Pieces pieces = Pieces.of(threshold, framesInFlight);
        sender = new SocketSender(new StreamSet(open, "sender under test", "the peer", senders, null), names, pieces,
                () -> nanos);
        receiver = new SocketReceiver(new StreamSet(open, "receiver under test", "the peer", receivers, null), names,
                pieces);
    }

    MemoryRegion register(MemorySegment memory) {
        return SocketRegion.register(open, memory, regionIds);
    }

    static SocketChannel[] pair() throws IOException {
        try (ServerSocketChannel server = ServerSocketChannel.open()) {
            server.setOption(StandardSocketOptions.SO_RCVBUF, KERNEL_BYTES);
            server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            SocketChannel client = SocketChannel.open();
            client.setOption(StandardSocketOptions.SO_SNDBUF, KERNEL_BYTES);
            client.setOption(StandardSocketOptions.SO_RCVBUF, KERNEL_BYTES);
            client.connect(server.getLocalAddress());
            SocketChannel accepted = server.accept();
            accepted.setOption(StandardSocketOptions.SO_SNDBUF, KERNEL_BYTES);
            for (SocketChannel each : new SocketChannel[] {client, accepted}) {
                each.configureBlocking(false);
                each.setOption(StandardSocketOptions.TCP_NODELAY, true);
            }
            return new SocketChannel[] {client, accepted};
        }
    }

    /** Carries up to the given number of bytes of a rail's data, and all its acknowledgements. */
    void carry(int rail, int bytes) throws IOException {
        legs[rail].carry(bytes);
    }

    /** Carries up to the given number of bytes of a rail's data. Acknowledgements wait. */
    void carryData(int rail, int bytes) throws IOException {
        legs[rail].carryData(bytes);
    }

    /** Returns the number of data bytes that were carried. */
    long carried(int rail) {
        return legs[rail].carried;
    }

    /**
     * Cuts a rail in the middle of its traffic.
     *
     * @param reset whether the two ends see a reset. Otherwise they see the end of the stream
     */
    void cut(int rail, boolean reset) throws IOException {
        legs[rail].cut(reset);
    }

    @Override
    public void close() throws IOException {
        sender.close();
        receiver.close();
        for (Leg leg : legs) {
            leg.cut(false);
        }
        open.close();
    }

    private static final class Leg {
        private final SocketChannel near;
        private final SocketChannel far;
        private final ByteBuffer data = ByteBuffer.allocate(64 << 10);
        private final ByteBuffer acks = ByteBuffer.allocate(4 << 10);
        private long carried;

        private Leg(SocketChannel near, SocketChannel far) {
            this.near = near;
            this.far = far;
        }

        private void carryData(int bytes) throws IOException {
            carried += move(near, far, data, bytes);
        }

        private void carry(int bytes) throws IOException {
            try {
                carryData(bytes);
                move(far, near, acks, Integer.MAX_VALUE);
            } catch (IOException oneEndIsGone) {
                cut(true);
            }
        }

        private static int move(SocketChannel from, SocketChannel to, ByteBuffer buffer, int bytes) throws IOException {
            if (!from.isOpen()) {
                return 0;
            }
            buffer.limit(Math.min(buffer.capacity(), Math.max(bytes, buffer.position())));
            if (from.read(buffer) < 0) {
                to.close();
                from.close();
                return 0;
            }
            int written = to.write(buffer.flip());
            buffer.compact();
            return written;
        }

        private void cut(boolean reset) throws IOException {
            for (SocketChannel each : new SocketChannel[] {near, far}) {
                if (each.isOpen()) {
                    if (reset) {
                        each.setOption(StandardSocketOptions.SO_LINGER, 0);
                    }
                    each.close();
                }
            }
        }
    }
}
