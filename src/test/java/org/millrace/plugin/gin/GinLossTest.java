package org.millrace.plugin.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.cuda.CudaException;
import org.millrace.gin.GinException;
import org.millrace.gin.GinOptions;
import org.millrace.gin.WindowMemory;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Warnings;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.connection.FullMesh;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;
import org.millrace.net.ucx.Ucx;
import org.millrace.plugin.HostProgram;
import org.millrace.plugin.loss.LossWatch;
import org.millrace.plugin.path.PeerHandle;

/** A rank is lost or fails before a communicator exists. The error names the rank, and no resource stays open. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class GinLossTest {

    private static final Duration TIMEOUT = Duration.ofSeconds(30);
    private static final byte GIN = 3;

    private static Network open(String network) {
        Ucx.assumeUsable(network);
        return NetworkOptions.NetworkChoice.parse(network).open(SocketOptions.defaults(), ShmOptions.defaults());
    }

    private interface Use {
        void of(FullMesh[] meshes) throws Exception;
    }

    /** Connects two ranks. Each has its own network. */
    private static void withMeshes(String network, Use use) throws Exception {
        Network[] networks = {open(network), open(network)};
        Listener[] listeners = {networks[0].listen(), networks[1].listen()};
        byte[][] addresses = {listeners[0].address(), listeners[1].address()};
        FullMesh[] meshes = new FullMesh[2];
        try {
            GinRankPair.together(rank -> meshes[rank] =
                    FullMesh.connect(networks[rank], listeners[rank], addresses, rank, 1, 0, TIMEOUT, () -> null));
            use.of(meshes);
        } finally {
            for (int rank = 0; rank < 2; rank++) {
                listeners[rank].close();
                networks[rank].close();
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"shm, true", "socket, true", "shm, false", "socket, false", "ucx, true", "ucx, false"})
    void aRankThatEndsWhileOthersRegisterIsNamed(String network, boolean killed) throws Exception {
        withMeshes(network, meshes -> {
            if (killed) {
                meshes[1].senders()[0].abort();
                meshes[1].receivers()[0].close();
            } else {
                meshes[1].senders()[0].close();
                meshes[1].receivers()[0].close();
            }
            try (GinExchange control = new GinExchange(0, meshes[0], TIMEOUT)) {
                GinException lost =
                        assertThrows(GinException.class, () -> control.exchange(new long[2][GinExchange.WORDS]));
                assertTrue(lost.getMessage().startsWith("rank 0 lost rank 1"), lost.getMessage());
            }
        });
    }

    /**
     * Streams are cut between two exchanges, while no thread polls the connections. The next exchange restores the
     * streams.
     */
    @Test
    void anExchangeGoesOnOverConnectionsThatWereCutMeanwhile() throws Exception {
        try (Network network = open("socket");
                Listener one = network.listen();
                Listener other = network.listen();
                Warnings warnings = new Warnings("org.millrace.net.socket.Reconnector.Outage")) {
            byte[][] addresses = {one.address(), other.address()};
            GinExchange[] ranks = new GinExchange[2];
            FullMesh[] meshes = new FullMesh[2];
            GinRankPair.together(rank -> {
                meshes[rank] =
                        FullMesh.connect(network, rank == 0 ? one : other, addresses, rank, 1, 0, TIMEOUT, () -> null);
                ranks[rank] = new GinExchange(rank, meshes[rank], TIMEOUT);
            });
            for (int round = 0; round < 4; round++) {
                if (round > 0) {
                    ((FrameSender.Railed) (round == 1 ? meshes[0].senders()[1] : meshes[0].receivers()[1])).cutRail(0);
                }
                int said = 100 * round;
                AtomicInteger done = new AtomicInteger();
                GinRankPair.together(rank -> {
                    long[][] words = new long[2][GinExchange.WORDS];
                    words[1 - rank][0] = said + rank;
                    assertEquals(said + 1 - rank, ranks[rank].exchange(words)[1 - rank][0]);
                    done.incrementAndGet();
                    while (done.get() < 2) { // the agent's thread calls keepUp while a communicator exists
                        ranks[rank].keepUp();
                    }
                });
            }
            warnings.await("is restored");
            ranks[0].close();
            ranks[1].close();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "socket", "auto", "ucx"})
    void aRankThatIsGoneBeforeItConnectsIsNamed(String network) {
        try (Network here = open(network); Listener listener = here.listen(); Network there = open(network)) {
            byte[][] addresses = new byte[2][];
            addresses[0] = listener.address();
            try (Listener gone = there.listen()) {
                addresses[1] = gone.address();
            }
            ConnectionException lost = assertThrows(ConnectionException.class,
                    () -> FullMesh.connect(here, listener, addresses, 0, 1, 0, Duration.ofSeconds(3), () -> null));
            assertTrue(lost.getMessage().matches("(?s)rank 0( cannot connect to|: no connection with) rank 1.*"),
                    lost.getMessage());
        }
    }

    /**
     * A rank that has received everything closes its group at once. Its peer still receives the data that the rank has
     * sent.
     */
    @ParameterizedTest
    @ValueSource(strings = {"shm", "socket", "ucx"})
    void aRankThatLeavesAfterItToldIsHeard(String network) throws Exception {
        withMeshes(network, meshes -> {
            FrameHeader words = new FrameHeader();
            words.word(0, 0);
            words.word(1, 42);
            meshes[1].senders()[0].offer(words, null, 0);
            meshes[1].close();
            try (GinExchange control = new GinExchange(0, meshes[0], TIMEOUT)) {
                assertEquals(42, control.exchange(new long[2][GinExchange.WORDS])[1][0]);
            }
        });
    }

    /**
     * After a rank has connected, it finds that it has no GPU. It closes its connections, so that its peers do not wait
     * for it.
     */
    @Test
    void aRankThatCannotGoOnClosesWhatItConnected() throws Exception {
        GinPlugin plugin = new GinPlugin(Map.of("MILLRACE_NET", "socket", "NCCL_SOCKET_IFNAME", "lo")::get,
                new LossWatch(), () -> false);
        try (Arena arena = Arena.ofConfined();
                Network network = new SocketNetwork(SocketOptions.defaults());
                Listener listener = network.listen()) {
            MemorySegment handles = arena.allocate(2 * 128, 8);
            MemorySegment pointers = arena.allocate(2 * Long.BYTES, 8);
            MemorySegment out = arena.allocate(Long.BYTES, 8);
            pointers.set(ValueLayout.JAVA_LONG, 0, handles.address());
            pointers.set(ValueLayout.JAVA_LONG, 8, handles.address() + 128);
            plugin.ginListen(0, 0, handles.address(), out.address());
            long listening = out.get(ValueLayout.JAVA_LONG, 0);
            new PeerHandle(GIN, new ConnectionKey(7, 8), listener.address()).write(handles.address() + 128);
            PeerHandle theirs = PeerHandle.read(handles.address());
            byte[][] addresses = {theirs.address(), listener.address()};
            FullMesh[] meshes = new FullMesh[2];
            GinRankPair.together(rank -> {
                if (rank == 0) {
                    assertThrows(CudaException.class,
                            () -> plugin.ginConnect(0, pointers.address(), 2, 0, 0, listening, out.address()));
                } else {
                    meshes[0] = FullMesh.connect(network, listener, addresses, 1, theirs.key().high(), 0, TIMEOUT,
                            () -> null);
                    meshes[1] = FullMesh.connect(network, listener, addresses, 1, theirs.key().low(), 0, TIMEOUT,
                            () -> null);
                }
            });
            for (FullMesh mesh : meshes) {
                assertEnds(mesh.receivers()[0]);
                mesh.senders()[0].close();
                mesh.receivers()[0].close();
            }
            plugin.ginCloseListen(listening);
        }
    }

    /**
     * Imitates two containers of one host. Each container has its own shared directory, and both directories have the
     * same name.
     */
    @Test
    void memoryThatNoPeerFindsLeavesNoFile() throws Exception {
        Path sub = Files.createTempDirectory(ShmOptions.defaults().directory(), "millrace-test-");
        Network[] networks = {open("socket"), open("socket")};
        Listener[] listeners = {networks[0].listen(), networks[1].listen()};
        byte[][] addresses = {listeners[0].address(), listeners[1].address()};
        HostGinDevice[] hosts = {new HostGinDevice("gin-host", true), new HostGinDevice("gin-host", true)};
        GinGroup[] groups = new GinGroup[2];
        try (Arena arena = Arena.ofShared()) {
            GinRankPair.together(rank -> {
                FullMesh data =
                        FullMesh.connect(networks[rank], listeners[rank], addresses, rank, 1, 0, TIMEOUT, () -> null);
                FullMesh control =
                        FullMesh.connect(networks[rank], listeners[rank], addresses, rank, 2, 0, TIMEOUT, () -> null);
                InvocationHandler elsewhere =
                        (hardware, method, arguments) -> method.getName().equals("sharedDirectory") && rank == 1 ? sub
                                : method.invoke(hosts[rank], arguments);
                groups[rank] = new GinGroup(rank, networks[rank],
                        (GinDevice) Proxy.newProxyInstance(GinDevice.class.getClassLoader(),
                                new Class<?>[] {GinDevice.class}, elsewhere),
                        data, control, GinOptions.defaults(), GinRankPair.losses());
                groups[rank].register(arena.allocate(64, 64).address(), 64, 1);
                groups[rank].createContexts(GinDescriptorFormat.V30, 1, 1, 1, 8);
            });
            assertEquals(List.of(), GinRankPair.files());
            assertEquals(0, sub.toFile().list().length);
            GinRankPair.together(rank -> groups[rank].close());
        } finally {
            for (int rank = 0; rank < 2; rank++) {
                hosts[rank].close();
                listeners[rank].close();
                networks[rank].close();
            }
            Files.delete(sub);
        }
    }

    private static void assertEnds(FrameReceiver receiver) {
        long deadline = System.nanoTime() + Duration.ofSeconds(10).toNanos();
        assertThrows(ConnectionException.class, () -> {
            while (deadline - System.nanoTime() > 0) {
                receiver.progress();
                receiver.poll();
                Thread.onSpinWait();
            }
        }, "the connection is still open");
    }

    @Test
    void aWindowThatAFailedCommunicatorRefusesIsGivenBack() {
        HostGinDevice host = new HostGinDevice("gin-host", false);
        List<String> calls = new ArrayList<>();
        InvocationHandler watching = (hardware, method, arguments) -> {
            Object result = method.invoke(host, arguments);
            return method.getName().equals("window") ? watch((WindowMemory) result, calls) : result;
        };
        GinDevice hardware = (GinDevice) Proxy.newProxyInstance(GinDevice.class.getClassLoader(),
                new Class<?>[] {GinDevice.class}, watching);
        try (Arena arena = Arena.ofConfined(); Network network = new ShmNetwork(ShmOptions.defaults())) {
            FullMesh alone = new FullMesh(new FrameSender[1], new FrameReceiver[1]);
            GinGroup group =
                    new GinGroup(0, network, hardware, alone, alone, GinOptions.defaults(), GinRankPair.losses());
            MemorySegment memory = arena.allocate(64, 64);
            group.deregister(group.register(memory.address(), 64, 1));
            assertEquals(List.of("close"), calls);
            group.communicator().fail(new GinException("failed by the test"));
            assertThrows(GinException.class, () -> group.register(memory.address(), 64, 1));
            assertEquals(List.of("close", "close"), calls);
            group.close();
        }
        host.close();
    }

    /**
     * Kernels of several processes put data into each other's windows, and one process is killed. The other processes
     * receive the error when NCCL queries it. Their kernels wait for signals, for room in queues and for a flush. All
     * these kernels end.
     */
    @ParameterizedTest
    @ValueSource(strings = {"shm", "socket"})
    @Tag("slow")
    void kernelsEndWhenAPeerIsKilled(String network) throws Exception {
        HostProgram.Outcome outcome = killed(network, "destroy", "60s");
        for (int rank = 1; rank < 3; rank++) {
            assertEquals(1, outcome.count("rank " + rank + ": error after "), outcome.output());
            assertEquals(1, outcome.count("rank " + rank + ": kernel ended after "), outcome.output());
            // A slow machine also reports that nothing moves, in lines of the same form.
            String line = "millrace: rank " + rank + ", pid \\d+ on \\S+: GIN has failed, .*";
            assertEquals(1, outcome.output().lines().filter(each -> each.matches(line)).count(), outcome.output());
            assertEquals(1, outcome.count("rank " + rank + " ended with status 0"), outcome.output());
        }
        assertTrue(outcome.count(" lost rank 0: ") > 0, outcome.output());
    }

    /**
     * The plugin ends a program that does not query the error. With the setting {@code report}, the program continues.
     */
    @ParameterizedTest
    @CsvSource({"exit, 75", "report, 0"})
    @Tag("slow")
    void aProgramThatDoesNotAskIsEnded(String onLoss, int status) throws Exception {
        HostProgram.Outcome outcome = killed("shm", onLoss, "100ms");
        for (int rank = 1; rank < 3; rank++) {
            assertEquals(1, outcome.count("rank " + rank + " ended with status " + status), outcome.output());
            assertEquals(onLoss.equals("report") ? 1 : 0, outcome.count("rank " + rank + ": kernel still waits"),
                    outcome.output());
        }
    }

    private static HostProgram.Outcome killed(String network, String way, String grace) throws Exception {
        HostProgram.Outcome outcome = HostProgram.compile("gin_loss_host")
                .with("MILLRACE_GIN", "host")
                .with("MILLRACE_LOSS_GRACE", grace)
                .with("MILLRACE_ON_LOSS", way.equals("report") ? "report" : null)
                .withNetwork(network)
                .run(HostProgram.library(), way, 3);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(1, outcome.count("rank 0 was killed by signal 9"), outcome.output());
        assertEquals(2, outcome.count(" has 0 descriptors of the plugin's"), outcome.output());
        assertEquals(2, outcome.count(" has outlived all ranks"), outcome.output());
        return outcome;
    }

    private static WindowMemory watch(WindowMemory memory, List<String> calls) {
        return (WindowMemory) Proxy.newProxyInstance(WindowMemory.class.getClassLoader(),
                new Class<?>[] {WindowMemory.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("close")) {
                        calls.add("close");
                    }
                    return method.invoke(memory, arguments);
                });
    }
}
