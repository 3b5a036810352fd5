package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.plugin.host.CallingLibrary;
import org.millrace.plugin.host.CapturedLog;
import org.millrace.plugin.host.NativeEnvironment;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.plugin.loss.LossWatch;
import org.millrace.plugin.path.DataPath;
import org.millrace.plugin.path.NetEndpoint;
import org.millrace.trace.OwnTrace;
import org.millrace.trace.TraceReader;
import org.millrace.trace.TracedState;

/** The plugin's operations, in the order in which a takeover uses them. A stub serves the connections. */
class NetPluginTest {

    private static final long DEVICE_HANDLE = 0x123450;
    private static final long LIBRARY = 0x1000;
    private static final int CALLS = 200_000;
    private static final int ROUNDS = 100;
    private static final long STRAY_BYTES = 64 << 10;

    private final Arena arena = Arena.ofConfined();
    private final MemorySegment cell = arena.allocate(8, 8);
    private final long pointer = cell.address();
    private final long deviceHandle = arena.allocate(8, 8).address();
    private final long handle = arena.allocate(plugin_h.NCCL_NET_HANDLE_MAXSIZE(), 8).address();
    private boolean serviceClosed;
    private boolean failsToOpen;
    private boolean failsToServe;
    private FrameSender lastSender;

    /** Takes connections over without moving any data. */
    private final class StubService implements DataPath {

        private final int id;
        private NetEndpoint endpoint;
        private boolean serviceStopped;

        StubService(int id) {
            this.id = id;
        }

        @Override
        public byte id() {
            return (byte) id;
        }

        @Override
        public DataPath.Connection sending(FrameSender sender, Network network, DataPath.Owner owner,
                DataPath.ConnectionNumber number, IntFunction<Pending<FrameSender>> more) {
            lastSender = sender;
            if (failsToServe) {
                throw new IllegalStateException("thrown by the test");
            }
            return new StubConnection(sender);
        }

        @Override
        public DataPath.Connection receiving(FrameReceiver receiver, Network network, DataPath.Owner owner,
                DataPath.ConnectionNumber number, List<Pending<FrameReceiver>> more) {
            return new StubConnection(receiver);
        }

        @Override
        public void opened(NetEndpoint made) {
            endpoint = made;
            if (failsToOpen) {
                throw new IllegalStateException("thrown by the test");
            }
        }

        @Override
        public void stop() {
            endpoint.network().register(arena.allocate(8)).close();
            serviceStopped = true;
        }

        /** Checks that the endpoint is still open, because connections use it until the service is closed. */
        @Override
        public void close() {
            assertTrue(serviceStopped);
            assertThrows(IllegalStateException.class, () -> endpoint.network().register(arena.allocate(8)));
            serviceClosed = true;
        }
    }

    private record StubConnection(AutoCloseable end) implements DataPath.Connection {

        @Override
        public long deviceHandle() {
            return DEVICE_HANDLE;
        }

        @Override
        public int register(long address, long bytes, boolean onDevice, long handle) {
            return 3;
        }

        @Override
        public void deregister(int region) {
            assertEquals(3, region);
        }

        @Override
        public int post(long address, long bytes, int region, int tag) {
            assertTrue(region == 3 || bytes == 0);
            return 7;
        }

        @Override
        public boolean test(int request, long sizes) {
            if (request == 7 && sizes != 0) {
                NativeMemory.putInt(sizes, 1000);
            }
            return request == 7;
        }

        @Override
        public void close() {
            try {
                end.close();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        }
    }

    private final NetPlugin plugin =
            new NetPlugin(settings -> new StubService(settings.takeover() ? 9 : 1), new LossWatch());
    private long context;

    @BeforeEach
    void init() {
        CapturedLog.begin();
        NativeEnvironment.set("NCCL_SOCKET_IFNAME", "lo");
        NativeEnvironment.set("NCCL_PXN_DISABLE", "");
        plugin.init(11, pointer, 5, CapturedLog.address(), 2, LIBRARY, CallingLibrary.nccl(22809));
        context = read(pointer);
    }

    @AfterEach
    void end() {
        plugin.finalize(context);
        arena.close();
        assertTrue(serviceClosed);
    }

    private static long read(long address) {
        return NativeMemory.at(address, 8).get(ValueLayout.JAVA_LONG, 0);
    }

    private static int readInt(long address) {
        return NativeMemory.at(address, 4).get(ValueLayout.JAVA_INT, 0);
    }

    private long[] connect() {
        plugin.listen(context, 0, handle, pointer, 0);
        long listener = read(pointer);
        long sender = 0;
        long receiver = 0;
        while (sender == 0 || receiver == 0) {
            if (sender == 0) {
                plugin.connect(context, 0, handle, pointer, deviceHandle, 0, 0);
                sender = read(pointer);
                assertEquals(sender == 0 ? 0 : DEVICE_HANDLE, read(deviceHandle));
            }
            if (receiver == 0) {
                plugin.accept(listener, pointer, deviceHandle, 0);
                receiver = read(pointer);
                assertEquals(receiver == 0 ? 0 : DEVICE_HANDLE, read(deviceHandle));
            }
        }
        plugin.closeListen(listener);
        return new long[] {sender, receiver};
    }

    @Test
    void aPathThatFailsToOpenIsClosedWithItsEndpoint() {
        failsToOpen = true;
        assertThrows(IllegalStateException.class,
                () -> plugin.init(11, pointer, 6, CapturedLog.address(), 2, 2 * LIBRARY, CallingLibrary.nccl(22809)));
        assertTrue(serviceClosed);
        assertNull(plugin.sessionIfAny(2 * LIBRARY));
    }

    @Test
    void theStreamOfAPathThatFailsIsClosed() {
        failsToServe = true;
        plugin.listen(context, 0, handle, pointer, 0);
        long listener = read(pointer);
        accepting(listener, new CountDownLatch(1));
        assertThrows(IllegalStateException.class, () -> connectTo(handle));
        ConnectionException closed = assertThrows(ConnectionException.class, lastSender::progress);
        assertTrue(closed.getMessage().contains("was closed on this side"), closed.getMessage());
        plugin.closeListen(listener);
    }

    @Test
    void ncclIsSetUpForTheTakeover() {
        assertEquals("1", NativeEnvironment.get("NCCL_PXN_DISABLE"));
        List<String> lines = CapturedLog.lines();
        assertTrue(lines.contains("3 NET/Millrace: set NCCL_PXN_DISABLE=1"), lines::toString);
    }

    @Test
    void connectionsCarryTheServicesDeviceHandleMemoryAndRequests() {
        for (long connection : connect()) {
            plugin.regMr(connection, 4096, 100, plugin_h.NCCL_PTR_HOST(), pointer);
            long memory = read(pointer);
            assertThrows(IllegalArgumentException.class,
                    () -> plugin.regMr(connection, 4096, 100, plugin_h.NCCL_PTR_CUDA(), pointer));
            plugin.isend(connection, 4096, 100, 7, memory, pointer);
            plugin.test(read(pointer), handle, deviceHandle);
            assertEquals(1, readInt(handle));
            assertEquals(1000, readInt(deviceHandle));
            plugin.deregMr(connection, memory);
            plugin.closeSend(connection);
            assertThrows(IllegalArgumentException.class, () -> plugin.deregMr(connection, memory));
        }
    }

    @Test
    void aPeerThatIsServedAnotherWayIsRefused() {
        plugin.listen(context, 0, handle, pointer, 0);
        NativeMemory.at(handle + 5, 1).set(ValueLayout.JAVA_BYTE, 0, (byte) 8);
        ConnectionException refused = assertThrows(ConnectionException.class,
                () -> plugin.connect(context, 0, handle, pointer, deviceHandle, 0, 0));
        assertTrue(
                refused.getMessage()
                        .contains("MILLRACE_TAKEOVER and the NCCL_* settings the same values on every rank"),
                refused.getMessage());
    }

    @Test
    void aMessageAllocatesNothing() {
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long connection = connect()[0];
        plugin.regMr(connection, 4096, 100, plugin_h.NCCL_PTR_HOST(), pointer);
        long memory = read(pointer);
        sendAndTest(connection, memory);
        long before = threads.getCurrentThreadAllocatedBytes();
        sendAndTest(connection, memory);
        long allocated = threads.getCurrentThreadAllocatedBytes() - before;
        assertTrue(allocated < STRAY_BYTES, allocated + " bytes in " + CALLS + " messages");
    }

    private void sendAndTest(long connection, long memory) {
        for (int i = 0; i < CALLS; i++) {
            plugin.isend(connection, 4096, 100, 7, memory, pointer);
            plugin.test(cell.get(ValueLayout.JAVA_LONG, 0), handle, deviceHandle);
        }
    }

    /** Returns a task that accepts a listener's connection. The result is the connection or the failure's reason. */
    private FutureTask<Object> accepting(long listener, CountDownLatch together) {
        FutureTask<Object> task = new FutureTask<>(() -> {
            try (Arena own = Arena.ofConfined()) {
                long connection = own.allocate(8, 8).address();
                together.countDown();
                together.await();
                while (read(connection) == 0) {
                    plugin.accept(listener, connection, 0, 0);
                }
                return read(connection);
            } catch (IllegalArgumentException refused) {
                return refused.getMessage();
            }
        });
        Thread.ofPlatform().daemon().start(task);
        return task;
    }

    private long connectTo(long peer) {
        cell.set(ValueLayout.JAVA_LONG, 0, 0);
        while (read(pointer) == 0) {
            plugin.connect(context, 0, peer, pointer, 0, 0, 0);
        }
        return read(pointer);
    }

    /** A listener accepts only one connection. One of two threads receives the connection, the other an error. */
    @Test
    void ofTwoThreadsThatAcceptFromOneListenerOneGetsTheConnection() throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            plugin.listen(context, 0, handle, pointer, 0);
            long listener = read(pointer);
            CountDownLatch together = new CountDownLatch(2);
            List<FutureTask<Object>> both = List.of(accepting(listener, together), accepting(listener, together));
            long sender = connectTo(handle);
            int accepted = 0;
            for (FutureTask<Object> each : both) {
                if (each.get(60, TimeUnit.SECONDS) instanceof Long connection) {
                    accepted++;
                    plugin.closeSend(connection);
                } else {
                    String why = (String) each.get();
                    assertTrue(why.startsWith("a connection was accepted from this listener before"), why);
                }
            }
            assertEquals(1, accepted);
            plugin.closeSend(sender);
            plugin.closeListen(listener);
        }
    }

    /** All listeners of a process share one address. Any polling thread receives connections for all listeners. */
    @Test
    void twoThreadsAcceptFromTheirOwnListenersAtOnce() throws Exception {
        MemorySegment otherHandle = arena.allocate(plugin_h.NCCL_NET_HANDLE_MAXSIZE(), 8);
        for (int round = 0; round < ROUNDS; round++) {
            plugin.listen(context, 0, handle, pointer, 0);
            long listener = read(pointer);
            plugin.listen(context, 0, otherHandle.address(), pointer, 0);
            long other = read(pointer);
            CountDownLatch together = new CountDownLatch(2);
            List<FutureTask<Object>> both = List.of(accepting(listener, together), accepting(other, together));
            List<Long> senders = List.of(connectTo(otherHandle.address()), connectTo(handle));
            for (FutureTask<Object> each : both) {
                plugin.closeSend(assertInstanceOf(Long.class, each.get(60, TimeUnit.SECONDS)));
            }
            senders.forEach(plugin::closeSend);
            plugin.closeListen(listener);
            plugin.closeListen(other);
        }
    }

    /**
     * The first NCCL of the process is taken over. The second NCCL is too new for a takeover. Each has its own
     * connections and environment variables.
     */
    @Test
    void anotherNcclOfThisProcess() {
        plugin.init(12, pointer, 6, CapturedLog.address(), 2, 2 * LIBRARY, CallingLibrary.nccl(23301));
        long other = read(pointer);
        assertNull(NativeEnvironment.get("NCCL_PXN_DISABLE"));
        plugin.listen(other, 0, handle, pointer, 0);
        assertThrows(ConnectionException.class, () -> plugin.connect(context, 0, handle, pointer, deviceHandle, 0, 0));
        plugin.closeListen(read(pointer));
        plugin.init(12, pointer, 7, CapturedLog.address(), 2, LIBRARY, CallingLibrary.nccl(22809));
        assertEquals("1", NativeEnvironment.get("NCCL_PXN_DISABLE"));
        plugin.finalize(read(pointer));
        assertFalse(serviceClosed);
        plugin.finalize(other);
        assertTrue(serviceClosed);
        serviceClosed = false;
        assertNull(plugin.sessionIfAny(2 * LIBRARY));
    }

    /** Before table v11, no call passes a context that identifies the communicator. */
    @Test
    void whoHasNoContextIsKnownByTheLibraryThatCalls() {
        plugin.listen(0, 0, handle, pointer, LIBRARY);
        plugin.closeListen(read(pointer));
        plugin.init(12, pointer, 6, CapturedLog.address(), 2, 3 * LIBRARY, CallingLibrary.nccl(22809));
        long other = read(pointer);
        assertThrows(NullPointerException.class, () -> plugin.listen(0, 0, handle, pointer, 2 * LIBRARY));
        plugin.finalize(other);
        serviceClosed = false;
    }

    /** If a library between NCCL and the plugin makes the calls, the calls belong to the process's only NCCL. */
    @Test
    void aLibraryBetweenNcclAndThePluginCallsForTheOnlyNccl() {
        plugin.listen(0, 0, handle, pointer, 2 * LIBRARY);
        plugin.closeListen(read(pointer));
        assertNull(plugin.sessionIfAny(2 * LIBRARY));
    }

    @Test
    void aLibraryIsWarnedOnceOfEachReason() {
        CapturedLog.begin();
        for (int cycle = 0; cycle < 2; cycle++) {
            for (int version : new int[] {23301, 23302}) {
                plugin.init(12, pointer, 6, CapturedLog.address(), 2, 2 * LIBRARY, CallingLibrary.nccl(version));
                plugin.finalize(read(pointer));
            }
        }
        serviceClosed = false;
        assertEquals(List.of("NCCL 2.33.1", "NCCL 2.33.2"),
                CapturedLog.lines()
                        .stream()
                        .filter(line -> line.startsWith("2 "))
                        .map(line -> line.replaceAll(".*not possible with (NCCL [0-9.]+).*", "$1"))
                        .toList());
    }

    /** NCCL aborts a communicator whose listener waits for its peer, and does not close the listener. */
    @Test
    void aListenerOfAFinalizedCommunicatorWaitsNoLonger(@TempDir Path directory) throws IOException {
        try (OwnTrace _ = new OwnTrace(directory)) {
            plugin.init(11, pointer, 6, CapturedLog.address(), 2, LIBRARY, CallingLibrary.nccl(22809));
            long aborted = read(pointer);
            plugin.listen(aborted, 0, handle, pointer, 0);
            long listener = read(pointer);
            while (connecting(directory) == 0) {
                plugin.accept(listener, pointer, 0, 0);
            }
            plugin.finalize(aborted);
            assertEquals(0, connecting(directory));
            plugin.closeListen(listener);
        }
    }

    @Test
    void aCommunicatorWaitsForItsRanksUntilItsBootstrapIsComplete(@TempDir Path directory) throws IOException {
        try (OwnTrace _ = new OwnTrace(directory)) {
            List<Runnable> ends = List.of(() -> plugin.bootstrapped(6),
                    () -> plugin.listen(read(pointer), 0, handle, deviceHandle, 0), () -> {});
            for (Runnable end : ends) {
                plugin.init(11, pointer, 6, CapturedLog.address(), 2, LIBRARY, CallingLibrary.nccl(22809));
                long made = read(pointer);
                assertEquals(1, connecting(directory));
                end.run();
                assertEquals(end == ends.getLast() ? 1 : 0, connecting(directory));
                plugin.finalize(made);
                assertEquals(0, connecting(directory));
            }
            NativeEnvironment.set("NCCL_PROFILER_PLUGIN", "other");
            plugin.init(11, pointer, 6, CapturedLog.address(), 2, LIBRARY, CallingLibrary.nccl(22809));
            NativeEnvironment.unset("NCCL_PROFILER_PLUGIN");
            assertEquals(0, connecting(directory));
            plugin.finalize(read(pointer));
        }
    }

    private static long connecting(Path directory) throws IOException {
        return TraceReader.readAll(directory, (file, problem) -> {})
                .stream()
                .flatMap(process -> process.joins().stream())
                .filter(join -> join.state() == TracedState.OPEN)
                .count();
    }

    @Test
    void theLastFinalizeEndsTheService() {
        plugin.init(11, pointer, 6, CapturedLog.address(), 2, LIBRARY, CallingLibrary.nccl(22809));
        plugin.finalize(read(pointer));
        assertFalse(serviceClosed);
    }
}
