package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.channels.SocketChannel;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.connection.OpenResources;

/** Staging memory is freed with its connection, because long-running programs lose and replace many peers. */
class StagedMemoryTest {

    private static final Rail[] RAILS = {new Rail(0, "first")};
    private static final int CONNECTIONS = 100;
    /** Size of buffers for acknowledgements and similar data. */
    private static final long SMALL_BYTES = 16 << 10;

    private final OpenResources open = new OpenResources("network under test");

    @ParameterizedTest
    @ValueSource(strings = {"close", "abort", "lost"})
    void memoryEndsWithItsConnection(String way) throws Exception {
        SocketChannel[] pair = RelayedRails.pair();
        StreamSet set = new StreamSet(open, "sender under test", "the peer", new SocketChannel[] {pair[0]}, null);
        SocketSender sender = new SocketSender(set, RAILS, Pieces.whole(8), System::nanoTime);
        assertTrue(set.memory(true).scope().isAlive());
        if (way.equals("lost")) {
            pair[1].close();
            assertThrows(ConnectionException.class, () -> {
                while (true) {
                    sender.offer(new FrameHeader(), null, 0);
                    sender.progress();
                }
            });
        }
        if (way.equals("close")) {
            sender.close();
        } else {
            sender.abort();
        }
        assertFalse(set.memory(true).scope().isAlive());
        pair[1].close();
    }

    /** Large buffers are freed at once, and not by the garbage collector. */
    @Test
    void connectionsLeaveNoLargeBuffers() throws Exception {
        long before = direct();
        for (int i = 0; i < CONNECTIONS; i++) {
            SocketChannel[] pair = RelayedRails.pair();
            StreamSet from = new StreamSet(open, "sender under test", "the peer", new SocketChannel[] {pair[0]}, null);
            StreamSet to = new StreamSet(open, "receiver under test", "the peer", new SocketChannel[] {pair[1]}, null);
            try (var _ = new SocketSender(from, RAILS, Pieces.whole(8), System::nanoTime);
                    var _ = new SocketReceiver(to, RAILS, Pieces.whole(8))) {
                assertTrue(to.memory(true).scope().isAlive());
            }
            assertFalse(to.memory(true).scope().isAlive());
        }
        long grown = direct() - before;
        assertTrue(grown <= CONNECTIONS * SMALL_BYTES, () -> grown + " bytes after " + CONNECTIONS + " connections");
    }

    private static long direct() {
        return ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)
                .stream()
                .filter(pool -> pool.getName().equals("direct"))
                .mapToLong(BufferPoolMXBean::getMemoryUsed)
                .sum();
    }
}
