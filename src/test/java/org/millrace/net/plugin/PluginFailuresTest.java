package org.millrace.net.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.LostPeerException;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.TestOptions;
import org.millrace.net.Warnings;
import org.millrace.net.plugin.TestNet.Count;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;

/**
 * A plugin that is invalid, has no device, or fails. Checks the messages to the user, and the release of every
 * resource.
 */
@Timeout(60)
@Tag("slow")
class PluginFailuresTest {

    private final TestNet plugin = TestNet.version(12);
    private long open;
    private long registered;

    @BeforeEach
    void note() {
        plugin.with("");
        open = plugin.count(Count.OPEN);
        registered = plugin.count(Count.REGISTERED);
    }

    @AfterEach
    void everythingIsGivenBack() {
        assertEquals(0, plugin.count(Count.COMPLAINTS));
        assertEquals(open, plugin.count(Count.OPEN));
        assertEquals(registered, plugin.count(Count.REGISTERED));
    }

    private static SocketOptions loopback() {
        return SocketOptions.defaults().withAddresses("", null, InetAddress.getLoopbackAddress());
    }

    private static String refusal(Path library) {
        return assertThrows(ConnectionException.class,
                () -> PluginNetwork.open(library, loopback(), PluginOptions.defaults()).close()).getMessage();
    }

    @Test
    void whatIsNoPluginIsNamed(@TempDir Path directory) throws Exception {
        Path none = directory.resolve("none.so");
        assertEquals("the network plugin " + none + " cannot be used: there is no such file", refusal(none));
        String searched = refusal(Path.of("libnccl-net-none.so"));
        assertTrue(searched.contains("libnccl-net-none.so: cannot open shared object file"), searched);
        assertTrue(refusal(Path.of("libm.so.6")).endsWith("it is no network plugin of NCCL's"));
        Path text = Files.writeString(directory.resolve("text.so"), "no library");
        assertTrue(refusal(text).contains("invalid ELF header") || refusal(text).contains("file too short"),
                refusal(text));
        String old = refusal(TestNet.build("-DncclNetPlugin_v12=ncclNetPlugin_v7"));
        assertTrue(old.endsWith("it has none of NCCL's network tables ncclNetPlugin_v8 to v12, only v7: it is of "
                + "another release of NCCL's"), old);
        String foreign = refusal(TestNet.build("-DncclNetPlugin_v12=somethingElse"));
        assertTrue(foreign.endsWith("it is no network plugin of NCCL's"), foreign);
        String without = refusal(TestNet.build("-DWITHOUT_ISEND", "-Wno-unused-function"));
        assertTrue(without.endsWith("its table ncclNetPlugin_v12 has no isend"), without);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                    "fail=init:1:2 | the plugin's init failed: ncclSystemError (2); its message: TestNet: init 1 "
                            + "fails",
                    "fail=devices:1:3 | the plugin's devices failed: ncclInternalError (3)",
                    "fail=getProperties:1:5 | the plugin's getProperties failed: ncclInvalidUsage (5)",
                    "devices=0 | has no device that can be used here", "nohost | test0 does not support host memory",
                    "kernels=1 | test0 needs kernels that put its data together (network device type 1)"})
    void aPluginThatDoesNotStartSaysWhy(String words, String expected) {
        plugin.with(words);
        String message = refusal(plugin.library());
        assertTrue(message.startsWith("the network plugin TestNet (" + plugin.library() + ", ncclNetPlugin_v12)"),
                message);
        assertTrue(message.contains(expected), message);
        if (words.startsWith("fail=d") || words.startsWith("fail=g") || !words.startsWith("fail")) {
            open = plugin.count(Count.OPEN); // NCCL itself does not release a context after a failed use
        }
    }

    @Test
    void aDeviceThatIsNotThereIsNamedWithThoseThatAre() {
        plugin.with("devices=2");
        assertEquals(List.of(1, 0),
                plugin.open(PluginOptions.defaults().withDevices(List.of(1, 0), 8))
                        .devices()
                        .stream()
                        .map(device -> device.index())
                        .toList());
        ConnectionException refused = assertThrows(ConnectionException.class,
                () -> plugin.open(PluginOptions.defaults().withDevices(List.of(0, 7), 8)));
        assertTrue(refused.getMessage().endsWith("has no device 7 that can be used; it has 0 (test0), 1 (test1)"),
                refused.getMessage());
        open = plugin.count(Count.OPEN);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"fail=listen:1:2 | the plugin's listen failed: ncclSystemError (2); its message: TestNet: "
                    + "listen 1", "fail=accept:5:3 | the plugin's accept failed: ncclInternalError (3)"})
    void aListenerThatCannotAcceptIsNamedOnBothSides(String words, String expected) {
        plugin.with(words);
        try (Network network = plugin.open(); Listener listener = network.listen()) {
            var key = Connected.newKey();
            var accepting = listener.expect(key);
            var connecting = network.connect(listener.address(), key);
            ConnectionException failure = Connected.failureOf(() -> {
                pollQuietly(connecting);
                accepting.poll();
            });
            assertTrue(failure.getMessage().contains(expected), failure.getMessage());
            if (words.contains("listen")) {
                ConnectionException there = Connected.failureOf(connecting::poll);
                assertTrue(there.getMessage().contains("its network plugin has no device that takes a connection"),
                        there.getMessage());
            }
            connecting.close();
            accepting.close();
        }
    }

    private static void pollQuietly(Pending<?> pending) {
        try {
            Object made = pending.poll();
            assertNull(made);
        } catch (ConnectionException refused) {
            // The peer has refused the connection and has stated the reason.
        } catch (IllegalStateException ended) {
            // An earlier failure has closed this connection attempt.
        }
    }

    @Test
    void aConnectThatFailsIsNamed() {
        plugin.with("fail=connect:3:6");
        try (Network network = plugin.open(); Listener listener = network.listen()) {
            var key = Connected.newKey();
            var accepting = listener.expect(key);
            var connecting = network.connect(listener.address(), key);
            ConnectionException failure = Connected.failureOf(() -> {
                pollQuietly(accepting);
                connecting.poll();
            });
            assertTrue(failure.getMessage().contains("the plugin's connect failed: ncclRemoteError (6); its message: "),
                    failure.getMessage());
            ConnectionException there = Connected.failureOf(accepting::poll);
            assertTrue(there.getMessage().contains("the peer's end of the connection is gone"), there.getMessage());
        }
    }

    @Test
    void anotherDeviceStandsInForOneWhoseLinkIsDown() {
        plugin.with("devices=2,deaf");
        try (Warnings warnings = new Warnings(PluginNetwork.class.getPackageName());
                Network network = plugin.open();
                Connected first = Connected.make(network, network);
                Connected second = Connected.make(network, network)) {
            assertTrue(first.receiver().toString().endsWith("over test1"), first.receiver().toString());
            assertTrue(second.sender().toString().endsWith("over test1"), second.sender().toString());
            assertTrue(warnings.await("cannot be used")
                    .contains("device test0 cannot be used: the plugin's listen failed: "
                            + "ncclSystemError (2); its message: TestNet: the link of test0 is down"));
        }
    }

    /**
     * The plugin of one side fails in the middle of a transfer. Both sides then fail, and the side of the failed plugin
     * names the reason.
     */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"fail=isend:30:2 | isend failed: ncclSystemError (2); its message: TestNet: isend 30 fails",
                    "fail=irecv:40:2 | irecv failed: ncclSystemError (2); its message: TestNet: irecv 40 fails",
                    "fail=test:300:6 | test failed: ncclRemoteError (6); its message: TestNet: test",
                    "cut=25 | failed: ncclRemoteError (6)"})
    void aTransferThatFailsEndsItsConnectionAndSaysWhy(String words, String expected) {
        plugin.with(words);
        try (Network network = plugin.open();
                Arena arena = Arena.ofShared();
                MemoryRegion memory = network.register(arena.allocate(1 << 20));
                Connected ends = Connected.make(network, network)) {
            ConnectionException failure = Connected.failureOf(() -> exchange(ends, memory));
            assertTrue(failure.getMessage().contains(expected), failure.getMessage());
            assertTrue(failure.getMessage().contains("whole frames were"), failure.getMessage());
            assertTrue(plugin.count(Count.FAULTS) > 0);
            ends.sender().abort();
            ends.receiver().close();
        }
    }

    private static void exchange(Connected ends, MemoryRegion memory) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(ends.sender().framesCompleted() % 3 * 50_000);
        ends.sender().offer(header, memory, 0);
        ends.sender().progress();
        ends.receiver().progress();
        if (ends.receiver().poll() != null) {
            ends.receiver().accept(memory, 500_000);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {5, 6})
    void aMessageThatCameShortIsNotBelieved(int message) {
        plugin.with("short=" + message);
        try (Network network = plugin.open();
                Arena arena = Arena.ofShared();
                MemoryRegion memory = network.register(arena.allocate(1 << 20));
                Connected ends = Connected.make(network, network)) {
            ConnectionException failure = Connected.failureOf(() -> exchange(ends, memory));
            assertTrue(failure.getMessage().contains("received an invalid message: "), failure.getMessage());
            assertEquals(1, plugin.count(Count.FAULTS));
        }
    }

    @Test
    void memoryThatCannotBeRegisteredIsNamed() {
        plugin.with("fail=regMr:3:1"); // calls 1 and 2 register the connection's own memory
        try (Network network = plugin.open();
                Arena arena = Arena.ofShared();
                MemoryRegion memory = network.register(arena.allocate(1 << 20));
                Connected ends = Connected.make(network, network)) {
            ConnectionException failure = Connected.failureOf(() -> exchange(ends, memory));
            assertTrue(failure.getMessage().contains("the plugin's regMr failed: ncclUnhandledCudaError (1)"),
                    failure.getMessage());
        }
    }

    @Test
    void aCallThatDoesNotReturnIsNamed() {
        plugin.with("block=irecv:20:1500");
        try (Warnings warnings = new Warnings(PluginNetwork.class.getPackageName());
                Network network = plugin.open(TestOptions.callLimit(Duration.ofMillis(50)));
                Connected ends = Connected.make(network, network)) {
            ends.sender().offer(new FrameHeader(), null, 0);
            while (plugin.count(Count.FAULTS) == 0) {
                if (ends.receiver().poll() != null) {
                    ends.receiver().accept(null, 0);
                    ends.sender().offer(new FrameHeader(), null, 0);
                }
                ends.sender().progress();
            }
            assertTrue(warnings.await("has not returned").startsWith(ends.receiver() + ": the plugin's irecv has not"));
        }
    }

    @Test
    void whatThePluginSaysByItselfIsPassedOn() {
        plugin.with("devices=2,deaf");
        try (Warnings warnings = new Warnings(PluginNetwork.class.getPackageName()); Network network = plugin.open()) {
            plugin.with("").complain("the link of test0 is up");
            assertEquals("a network plugin reports: TestNet: the link of test0 is up", warnings.await("is up"));
            assertEquals("plugin TestNet", network.name());
        }
    }

    @Test
    void aPeerWithAnotherNetworkIsToldSo() {
        try (Network network = plugin.open();
                Network socket = new SocketNetwork(loopback());
                Listener overSocket = socket.listen();
                Listener overPlugin = network.listen()) {
            assertTrue(assertThrows(ConnectionException.class,
                    () -> network.connect(overSocket.address(), Connected.newKey())).getMessage()
                    .contains("not an address of the network 'plugin': it begins with 'socket"));
            assertTrue(assertThrows(ConnectionException.class,
                    () -> socket.connect(overPlugin.address(), Connected.newKey())).getMessage()
                    .contains("not an address of the network 'socket': it begins with 'plugin"));
        }
    }

    @Test
    void aPeerWithAnotherPluginIsToldSo() {
        TestNet other = TestNet.other();
        try (Network network = plugin.open(); Network different = other.open(); Listener listener = network.listen()) {
            var key = Connected.newKey();
            var accepting = listener.expect(key);
            var connecting = different.connect(listener.address(), key);
            ConnectionException refused = Connected.failureOf(() -> {
                assertNull(accepting.poll());
                connecting.poll();
            });
            assertTrue(
                    refused.getMessage()
                            .contains("it has loaded another network plugin: MILLRACE_NET must be the " + "same"),
                    refused.getMessage());
            assertFalse(network.name().equals(different.name()));
        }
    }

    @Test
    void whoWasLostIsPassedOn() {
        try (Network network = plugin.open(); Connected ends = Connected.make(network, network)) {
            ends.sender().blame("pid 4711 on 10.0.0.2");
            ends.sender().close();
            ConnectionException end = Connected.failureOf(ends.receiver()::poll);
            assertEquals("pid 4711 on 10.0.0.2", assertInstanceOf(LostPeerException.class, end).lostPeer());
        }
    }
}
