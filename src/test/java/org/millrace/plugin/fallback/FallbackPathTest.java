package org.millrace.plugin.fallback;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.util.List;
import java.util.function.IntSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Pending;
import org.millrace.net.TestOptions;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.plugin.loss.LossWatch;
import org.millrace.plugin.path.DataPath;

/** Both ends of one connection, on one thread. */
class FallbackPathTest {

    private static final int BYTES = 1 << 16;
    private static final int BUFFER = 1 << 14;
    private static final long MAX_POLLS = 100_000_000;

    private final SocketNetwork network = new SocketNetwork(
            TestOptions.buffers(BUFFER, BUFFER).withAddresses("", null, InetAddress.getLoopbackAddress()));
    private final MemorySegment memory = Arena.ofAuto().allocate(2 * BYTES);
    private final long from = memory.address();
    private final long to = memory.address() + BYTES;
    private FallbackConnection sender;
    private FallbackConnection receiver;
    private int source;
    private int destination;

    @BeforeEach
    void connect() {
        FallbackPath service = new FallbackPath(null, 1, PayloadCheck.OFF);
        Listener listener = network.listen();
        ConnectionKey key = new ConnectionKey(1, 2);
        Pending<FrameReceiver> accepting = listener.expect(key);
        Pending<FrameSender> connecting = network.connect(listener.address(), key);
        FrameSender out = null;
        FrameReceiver in = null;
        for (long i = 0; i < MAX_POLLS && (out == null || in == null); i++) {
            out = out == null ? connecting.poll() : out;
            in = in == null ? accepting.poll() : in;
        }
        sender = (FallbackConnection) service.sending(out, network,
                new DataPath.Owner(0, new DataPath.DrainTimeout(), new LossWatch().communicator(0)),
                new DataPath.ConnectionNumber(new ConnectionKey(0, 0), 0), null);
        receiver = (FallbackConnection) service.receiving(in, network,
                new DataPath.Owner(0, new DataPath.DrainTimeout(), new LossWatch().communicator(0)),
                new DataPath.ConnectionNumber(new ConnectionKey(0, 0), 0), List.of());
        source = sender.register(from, BYTES, false, 0);
        destination = receiver.register(to, BYTES, false, 0);
    }

    @AfterEach
    void close() {
        sender.close();
        receiver.close();
        network.close();
    }

    private static int await(IntSupplier test) {
        for (long i = 0; i < MAX_POLLS; i++) {
            int bytes = test.getAsInt();
            if (bytes != FallbackConnection.PENDING) {
                return bytes;
            }
        }
        throw new AssertionError("not done after " + MAX_POLLS + " polls");
    }

    @Test
    void aShorterMessageThanExpectedTellsItsLengthAndLeavesTheRest() {
        memory.set(ValueLayout.JAVA_BYTE, 0, (byte) 5);
        memory.set(ValueLayout.JAVA_BYTE, 1, (byte) 6);
        int receive = receiver.post(to, BYTES, destination, 0);
        int send = sender.post(from, 1, source, 0);
        assertEquals(1, await(() -> sender.test(send)));
        assertEquals(1, await(() -> receiver.test(receive)));
        assertEquals(5, memory.get(ValueLayout.JAVA_BYTE, BYTES));
        assertEquals(0, memory.get(ValueLayout.JAVA_BYTE, BYTES + 1));
    }

    @Test
    void aMessageOfNoBytesNeedsNoMemory() {
        int send = sender.post(0, 0, 999, 0);
        int receive = receiver.post(0, 0, 999, 0);
        assertEquals(0, await(() -> sender.test(send)));
        assertEquals(0, await(() -> receiver.test(receive)));
    }

    @Test
    void aLongerMessageThanThereIsRoomForIsAnErrorThatSaysBoth() {
        sender.post(from, 100, source, 0);
        ConnectionException refused = assertThrows(ConnectionException.class, () -> {
            int receive = receiver.post(to, 99, destination, 0);
            await(() -> receiver.test(receive));
        });
        assertTrue(refused.getMessage().contains("message 0 has 100 bytes, and there is room for 99"),
                refused.getMessage());
    }

    @Test
    void thereIsAnEndToWhatIsUnderWayAtOnce() {
        int posted = 0;
        while (receiver.post(to, 1, destination, 0) != DataPath.Connection.NO_REQUEST) {
            posted++;
        }
        assertEquals(RequestRing.CAPACITY, posted);
    }

    @Test
    void aMessageOutsideItsMemoryIsRefused() {
        assertThrows(IllegalArgumentException.class, () -> sender.post(from + 1, BYTES, source, 0));
        assertThrows(IllegalArgumentException.class, () -> sender.post(from - 1, 1, source, 0));
        assertThrows(IllegalArgumentException.class, () -> sender.post(from, -1, source, 0));
        assertThrows(IllegalArgumentException.class, () -> receiver.post(to, 1, destination + 1, 0));
    }

    /**
     * When a communicator is aborted, NCCL deregisters memory although messages are in flight. NCCL then frees the
     * memory, so the plugin must not write to it any longer.
     */
    @Test
    void memoryThatIsDeregisteredUnderAMessageEndsTheConnection() {
        memory.fill((byte) 1).asSlice(BYTES).fill((byte) 0);
        int first = sender.post(from, BYTES, source, 0);
        int last = first;
        for (int next = first; next != DataPath.Connection.NO_REQUEST; next = sender.post(from, BYTES, source, 0)) {
            last = next;
        }
        int send = last;
        assertEquals(FallbackConnection.PENDING, sender.test(send),
                "the system's buffers took more than was meant to fill them");
        sender.deregister(source);
        assertThrows(RuntimeException.class, () -> sender.test(send));
        int receive = receiver.post(to, BYTES, destination, 0);
        byte[] before = memory.asSlice(BYTES).toArray(ValueLayout.JAVA_BYTE);
        receiver.deregister(destination);
        assertThrows(RuntimeException.class, () -> receiver.test(receive));
        assertArrayEquals(before, memory.asSlice(BYTES).toArray(ValueLayout.JAVA_BYTE));
    }
}
