package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.MillraceException;
import org.millrace.abi.AbortFlag;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.KernelChannel;
import org.millrace.abi.Protocol;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.bootstrap.GroupFailure;
import org.millrace.config.Configuration;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.device.DeviceCommunicator;
import org.millrace.device.SendPort;
import org.millrace.engine.Connector.State;
import org.millrace.engine.TransportConnections.PeerMessages;
import org.millrace.net.ConnectionException;
import org.millrace.plugin.path.NetEndpoint;
import org.millrace.proxy.ProxyAgent;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.trace.Hang;
import org.millrace.trace.OwnTrace;
import org.millrace.trace.TraceReader;
import org.millrace.trace.Verdict;
import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.EndSettings;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;
import org.millrace.transport.TransportEnd;

/**
 * States of a connection, and the possible results when a separate thread creates the connection. The test acts as the
 * peer.
 */
class ConnectorsTest {

    private static final Duration TIMEOUT = Duration.ofSeconds(30);
    private static final Duration NEVER = Duration.ofHours(1);
    private static final ConnectionLayout LAYOUT = new ConnectionLayout(8192, 8192, 65536);

    @TempDir
    Path directory;

    private final Set<Long> arrived = ConcurrentHashMap.newKeySet();
    private final List<ProxyOp> announced = new CopyOnWriteArrayList<>();
    private final CountDownLatch inSetup = new CountDownLatch(1);
    private volatile CountDownLatch held = new CountDownLatch(0);
    private volatile boolean connects;
    private volatile boolean lost;
    private volatile int freed;
    private volatile Thread maker;
    private final Arena arena = Arena.ofShared();
    /** Network of the sending ends and of the peer; null for ends without a network. */
    private volatile NetEndpoint network;
    private ControlPlane control;
    private GroupFailure failure;
    private ConnectorService service;
    private TransportConnections connections;
    private Connectors connectors;

    private final class Fake implements Transport {
        @Override
        public String name() {
            return "FAKE";
        }

        @Override
        public Availability offer() {
            return Availability.yes("");
        }

        @Override
        public Availability canConnect(PeerInfo here, PeerInfo there) {
            return Availability.yes("");
        }

        @Override
        public TransportEnd send(EndRequest request) {
            return network == null ? new End()
                    : new NetTransport(network.network(), network.listener(), null).send(request);
        }

        @Override
        public TransportEnd receive(EndRequest request) {
            return new End();
        }
    }

    private final class End implements TransportEnd {
        @Override
        public byte[] setup() {
            maker = Thread.currentThread();
            inSetup.countDown();
            boolean interrupted = true;
            while (interrupted) {
                try {
                    held.await();
                    interrupted = false;
                } catch (InterruptedException e) {
                    // no thread interrupts the calling thread
                }
            }
            return new byte[0];
        }

        @Override
        public boolean connect(byte[] peer) {
            if (lost) {
                throw new ConnectionException("planted");
            }
            return connects;
        }

        @Override
        public ConnectionInfo info() {
            return ConnectionInfo.allocate(arena, LAYOUT, 0);
        }

        @Override
        public void announce(ProxyOp op) {
            announced.add(op);
        }

        @Override
        public void free() {
            freed++;
        }
    }

    /** Messages of the peer. {@code arrived} decides whether a message is present. */
    private final class Messages implements PeerMessages {
        @Override
        public void send(int peer, long tag, byte[] data) {
            // the test acts as the peer, and needs no message
        }

        @Override
        public byte[] receive(int peer, long tag) {
            byte[] name = {4, 'F', 'A', 'K', 'E'};
            byte[] address = network == null ? new byte[0] : network.listener().address();
            return !arrived.contains((long) peer) ? null
                    : ByteBuffer.allocate(name.length + address.length).put(name).put(address).array();
        }
    }

    @BeforeEach
    void open() {
        control = ControlPlane.join("file:" + directory.resolve("group"), 0, 1, TIMEOUT);
        failure = new GroupFailure(control);
        service = new ConnectorService(0);
        List<Transport> transports = List.of(new Fake());
        byte[][] said = new byte[3][];
        for (int rank = 0; rank < said.length; rank++) {
            int self = rank;
            PeerInfo.exchange(rank, "host", transports, mine -> {
                said[self] = mine;
                return new byte[0][];
            });
        }
        connections = new TransportConnections(0, PeerInfo.exchange(0, "host", transports, mine -> said), transports,
                new Messages(), new EndSettings(LAYOUT, 0, (connection, thrown) -> {}, failure::fail, null, 0, null,
                        AbortFlag.of(Arena.global().allocate(AbortFlag.BYTES, AbortFlag.BYTES)), PayloadCheck.OFF, 0));
        connectors = connectors(NEVER);
    }

    private final AtomicLong strangers = new AtomicLong();

    private DeviceCommunicator device() {
        return new DeviceCommunicator(arena, 0, new int[3], LAYOUT, 1024, 2, 1024, 0);
    }

    private Connectors connectors(Duration deadline) {
        return new Connectors(device(), connections, deadline, failure, new ProxyAgent("test"), (_, _) -> {}, service,
                strangers::get, new DirectTraces(0));
    }

    @AfterEach
    void close() {
        held.countDown();
        assertTrue(connectors.stop(TIMEOUT));
        connectors.close();
        connections.close();
        service.close();
        control.close();
        arena.close();
    }

    private static void await(BooleanSupplier condition, String what) {
        long deadline = System.nanoTime() + TIMEOUT.toNanos();
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() - deadline < 0, what);
            Thread.onSpinWait();
        }
    }

    private static void await(Connector<?> connector, State state) {
        await(() -> connector.state() == state, connector + " is " + connector.state() + " and never " + state);
    }

    private static ProxyOp operation(int number) {
        return new ProxyOp(number, 0, 0, 1, 1, 1, Protocol.SIMPLE, null);
    }

    @Test
    void aConnectionGoesThroughItsStatesOnAnotherThread() {
        Connector<SendPort> connector = connectors.send(1, 0, KernelChannel.COLLECTIVE);
        connector.announce(operation(1));
        await(connector, State.SETTING_UP);
        assertNull(connector.transport());
        arrived.add(1L);
        await(connector, State.CONNECTING);
        connector.announce(operation(2));
        assertEquals(List.of(), announced);
        connects = true;
        await(connector, State.CONNECTED);
        connectors.await();
        connector.announce(operation(3));
        assertEquals(List.of(operation(1), operation(2), operation(3)), announced);
        assertEquals("FAKE", connector.transport());
        assertTrue(maker.getName().contains("connect-0"), maker.getName());
        assertSame(connector, connectors.send(1, 0, KernelChannel.COLLECTIVE));
    }

    /** The peer has begun the connection, too, but the peer's process does not accept it. */
    @Test
    void aConnectionThatTheNetworkDoesNotMakeIsExplained() throws IOException {
        Path traces = Files.createDirectory(directory.resolve("traces"));
        try (OwnTrace _ = new OwnTrace(traces);
                NetEndpoint endpoint = NetEndpoint.open(
                        Configuration.ofPlugin(Map.of("MILLRACE_NET", "socket", "NCCL_SOCKET_IFNAME", "lo")::get))) {
            network = endpoint;
            Connector<SendPort> connector = connectors.send(1, 0, KernelChannel.COLLECTIVE);
            await(connector, State.SETTING_UP);
            assertEquals(List.of(), sentences(traces), "the peer has not begun the connection");
            arrived.add(1L);
            await(connector, State.CONNECTING);
            List<String> sentences = List.of();
            while (sentences.isEmpty()) {
                assertEquals(State.CONNECTING, connector.state());
                sentences = sentences(traces);
            }
            String sentence =
                    "Rank 0 \\(pid \\d+ on [^ ]+, running\\) has not connected: socket connection \\S+ to port "
                            + "\\d+ of 127.0.0.1 waits for the listener's answer\\. Nothing has moved for \\d+\\.\\d s";
            assertTrue(sentences.size() == 1 && sentences.getFirst().matches(sentence), sentences.toString());
            assertTrue(connectors.stop(TIMEOUT));
            assertEquals(List.of(), sentences(traces), "given up");
        }
    }

    private static List<String> sentences(Path traces) throws IOException {
        return Hang.verdicts(() -> TraceReader.readAll(traces, (file, problem) -> {}), Duration.ZERO)
                .stream()
                .map(Verdict::sentence)
                .toList();
    }

    @Test
    void noneWaitsForAnother() {
        Connector<?> first = connectors.receive(1, 0, KernelChannel.COLLECTIVE);
        Connector<?> second = connectors.receive(2, 0, KernelChannel.COLLECTIVE);
        connects = true;
        arrived.add(2L);
        await(second, State.CONNECTED);
        assertEquals(State.SETTING_UP, first.state());
        arrived.add(1L);
        await(first, State.CONNECTED);
    }

    /**
     * The program needs the cores. If no messages are in flight, the thread that makes connections therefore sleeps
     * without a time limit until another thread wakes it.
     */
    @Test
    void theThreadSleepsWhenNothingIsAsked() {
        arrived.addAll(List.of(1L, 2L));
        connects = true;
        connectors.send(1, 0, KernelChannel.COLLECTIVE);
        connectors.await();
        await(() -> maker.getState() == Thread.State.WAITING, "the thread does not sleep");
        connectors.send(2, 0, KernelChannel.COLLECTIVE);
        connectors.await();
        await(() -> maker.getState() == Thread.State.WAITING, "the thread does not sleep again");
    }

    @Test
    void aJoinerThatIsInterruptedWaitsNoLonger() throws InterruptedException {
        connectors.send(1, 0, KernelChannel.COLLECTIVE);
        AtomicReference<MillraceException> thrown = new AtomicReference<>();
        Thread joiner = Thread.ofPlatform().daemon().start(() -> {
            Thread.currentThread().interrupt();
            try {
                connectors.await();
            } catch (MillraceException e) {
                thrown.set(e);
            }
        });
        assertTrue(joiner.join(TIMEOUT), "the joiner still spins");
        assertTrue(
                thrown.get().getMessage().contains("interrupted while waiting for the connections of the communicator"),
                thrown.get().getMessage());
    }

    @Test
    void whatIsOnTheWayIsStoppedAndFreed() {
        Connector<?> connector = connectors.send(1, 0, KernelChannel.COLLECTIVE);
        await(connector, State.SETTING_UP);
        assertTrue(connectors.stop(TIMEOUT));
        assertEquals(State.STOPPED, connector.state());
        assertEquals(1, freed);
        assertTrue(connectors.stop(TIMEOUT), "twice");
        assertNull(failure.get());
    }

    /** A stop returns false while the thread runs, because the memory that the thread uses must not be freed yet. */
    @Test
    void aStopIsAcknowledgedByTheThreadAlone() throws InterruptedException {
        held = new CountDownLatch(1);
        Connector<?> connector = connectors.send(1, 0, KernelChannel.COLLECTIVE);
        assertTrue(inSetup.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS));
        assertFalse(connectors.stop(Duration.ofMillis(20)));
        assertEquals(0, freed);
        held.countDown();
        assertTrue(connectors.stop(TIMEOUT));
        assertEquals(State.STOPPED, connector.state());
        assertEquals(1, freed);
    }

    @Test
    void strangersThatWereRefusedAreSaidInsteadOfBlamingTheOtherRank() {
        strangers.set(1200);
        connectors(Duration.ofMillis(20)).send(1, 0, KernelChannel.COLLECTIVE);
        await(() -> failure.get() != null, "no failure");
        assertTrue(
                failure.get()
                        .getMessage()
                        .contains("unauthenticated clients keep this rank's port busy: 1200 of their connections"),
                failure.get().getMessage());
    }

    @Test
    void aConnectionThatIsNotMadeInTimeFailsTheCommunicator() {
        Connectors hasty = connectors(Duration.ofMillis(20));
        Connector<?> connector = hasty.send(1, 0, KernelChannel.COLLECTIVE);
        await(() -> failure.get() != null, "no failure");
        assertEquals(State.FAILED, connector.state());
        assertTrue(failure.get().getMessage().contains("was not made within 20 ms (MILLRACE_CONNECT_DEADLINE)"),
                failure.get().getMessage());
        assertTrue(hasty.stop(TIMEOUT));
        assertEquals(State.FAILED, connector.state());
    }

    /**
     * A connection is lost, and another rank may be about to report the reason. If no rank reports a reason, the loss
     * itself fails the communicator, even if no event wakes the thread.
     */
    @Test
    void aConnectionThatIsLostFailsTheCommunicatorIfNoRankSaysWhy() {
        lost = true;
        arrived.add(1L);
        Connector<?> connector = connectors.send(1, 0, KernelChannel.COLLECTIVE);
        await(connector, State.FAILED);
        await(() -> failure.get() != null, "no failure");
        assertTrue(failure.get().getMessage().startsWith("the connection rank 0 -> rank 1, channel 0 cannot be made: "),
                failure.get().getMessage());
    }

    @Test
    void aFailureOfAnotherRankWakesTheThread() throws Exception {
        Thread other = Thread.ofPlatform().start(() -> {
            try (ControlPlane second = ControlPlane.join("file:" + directory.resolve("two"), 1, 2, TIMEOUT)) {
                second.barrier();
                second.fail(new MillraceException("planted"));
            }
        });
        try (ControlPlane first = ControlPlane.join("file:" + directory.resolve("two"), 0, 2, TIMEOUT)) {
            GroupFailure shared = new GroupFailure(first);
            Connectors idle = new Connectors(device(), connections, NEVER, shared, new ProxyAgent("test"), (_, _) -> {},
                    service, strangers::get, new DirectTraces(0));
            first.barrier();
            await(() -> shared.get() != null, "the failure is not heard");
            assertTrue(shared.get() instanceof MillraceException);
            assertNotNull(first.failure());
            assertTrue(idle.stop(TIMEOUT));
        }
        other.join();
    }
}
