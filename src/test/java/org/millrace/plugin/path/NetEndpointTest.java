package org.millrace.plugin.path;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Pending;
import org.millrace.net.connection.Relay;
import org.millrace.net.plugin.TestNet;
import org.millrace.net.socket.AddressFormat;
import org.millrace.plugin.HostProgram;
import org.millrace.plugin.host.CapturedLog;

/** Connections that the plugin creates for the user's settings. */
class NetEndpointTest {

    private static final int CLIENTS = 600;
    /** Maximum number of clients without a hello that a listener keeps. */
    private static final int KEPT = 256;

    @BeforeEach
    void capture() {
        CapturedLog.begin();
    }

    /** Returns the description of a connection of this process to itself. */
    private static String connection(Map<String, String> environment) {
        try (NetEndpoint endpoint = NetEndpoint.open(Configuration.ofPlugin(environment::get))) {
            return connection(endpoint);
        }
    }

    private static String connection(NetEndpoint endpoint) {
        ConnectionKey key = new ConnectionKey(1, 2);
        try (Pending<FrameReceiver> accepting = endpoint.listener().expect(key);
                Pending<FrameSender> connecting = endpoint.network().connect(endpoint.listener().address(), key)) {
            Connected made = Connected.await(endpoint.listener(), connecting, accepting);
            String name = made.sender().toString();
            made.sender().close();
            made.receiver().close();
            return name;
        }
    }

    /** The listener drops clients that send nothing, even while libnccl does not call accept. */
    @ParameterizedTest
    @ValueSource(strings = {"0", "1"})
    @Timeout(60)
    void clientsDoNotGatherWhileNoConnectionIsAwaited(String tls) throws Exception {
        Map<String, String> environment = Map.of("MILLRACE_NET", "socket", "NCCL_SOCKET_IFNAME", "lo", "MILLRACE_TLS",
                tls, "MILLRACE_SECRET", "of the ranks");
        List<Socket> silent = new ArrayList<>();
        try (NetEndpoint endpoint = NetEndpoint.open(Configuration.ofPlugin(environment::get))) {
            Matcher port = Pattern.compile("port (\\d+)").matcher(endpoint.listener().toString());
            assertTrue(port.find());
            for (int i = 0; i < CLIENTS; i++) {
                silent.add(new Socket(InetAddress.getLoopbackAddress(), Integer.parseInt(port.group(1))));
            }
            while (endpoint.listener().dropped() < CLIENTS - KEPT) {
                Thread.onSpinWait();
            }
            assertEquals(-1, silent.getFirst().getInputStream().read(), "the oldest is told by its end");
            connection(endpoint);
        } finally {
            for (Socket each : silent) {
                each.close();
            }
        }
        while (Thread.getAllStackTraces()
                .keySet()
                .stream()
                .anyMatch(each -> each.getName().equals("millrace-accept"))) {
            Thread.onSpinWait();
        }
    }

    /** Like an engine connection, a plugin connection works over a relay that passes on single bytes. */
    @Test
    @Timeout(60)
    void segmentsOfOneByteConnectUnderTls() throws Exception {
        Map<String, String> environment = Map.of("MILLRACE_NET", "socket", "NCCL_SOCKET_IFNAME", "lo", "MILLRACE_TLS",
                "1", "MILLRACE_SECRET", "of the ranks");
        ConnectionKey key = new ConnectionKey(1, 2);
        try (NetEndpoint endpoint = NetEndpoint.open(Configuration.ofPlugin(environment::get));
                Relay relay = new Relay(AddressFormat.SOCKET.decode(endpoint.listener().address()))) {
            relay.split(1);
            byte[] through = AddressFormat.SOCKET.encode(relay.address(),
                    AddressFormat.secret(endpoint.listener().address()), 1);
            Pending<FrameReceiver> accepting = endpoint.listener().expect(key);
            Connected made = Connected.await(endpoint.listener(), endpoint.network().connect(through, key), accepting);
            made.sender().close();
            made.receiver().close();
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"NCCL_SOCKET_NTHREADS=1|", "NCCL_SOCKET_NTHREADS=2 NCCL_NSOCKS_PERTHREAD=2|(4 streams)",
                    "MILLRACE_SOCKET_STREAMS=3 NCCL_SOCKET_NTHREADS=2|(3 streams)",
                    "MILLRACE_SOCKET_ADDRESSES=127.0.0.1,127.0.0.2|(2 rails)",
                    "MILLRACE_SOCKET_ADDRESSES=127.0.0.3,127.0.0.2,127.0.0.1 MILLRACE_SOCKET_STREAMS=2|(3 rails)"})
    void theSettingsSayHowManyStreamsAndRails(String settings, String says) {
        Map<String, String> environment = new HashMap<>(Map.of("MILLRACE_NET", "socket", "NCCL_SOCKET_IFNAME", "lo"));
        List.of(settings.split(" ")).forEach(each -> environment.put(each.split("=")[0], each.split("=")[1]));
        String name = connection(environment);
        assertTrue(says == null ? !name.contains("streams") && !name.contains("rails") : name.contains(says), name);
    }

    @ParameterizedTest
    @CsvSource({"MILLRACE_SOCKET_STREAMS, 17", "MILLRACE_SOCKET_ADDRESSES, eth0", "MILLRACE_FAULT, cut:frame=0",
            "MILLRACE_CONNECT_DEADLINE, never"})
    void whatIsNotUsableIsNamed(String name, String value) {
        Map<String, String> environment = Map.of("MILLRACE_NET", "socket", "NCCL_SOCKET_IFNAME", "lo", name, value);
        ConfigurationException refused = assertThrows(ConfigurationException.class,
                () -> NetEndpoint.open(Configuration.ofPlugin(environment::get)).close());
        assertTrue(refused.getMessage().contains(name), refused.getMessage());
    }

    @Test
    void thisPluginIsNoNetworkForItself() throws Exception {
        String setting = "plugin:" + HostProgram.library();
        ConfigurationException refused = assertThrows(ConfigurationException.class,
                () -> NetEndpoint.open(Configuration.ofPlugin(Map.of("MILLRACE_NET", setting)::get)).close());
        assertEquals("MILLRACE_NET=" + setting + " names Millrace's own plugin, as the network beneath itself; name "
                + "another plugin, or auto", refused.getMessage());
    }

    @Test
    void theDeviceIsThatOfTheNetworkPlugin() {
        TestNet plugin = TestNet.version(12).with("devices=2");
        Map<String, String> environment = Map.of("MILLRACE_NET", "plugin:" + plugin.library(), "NCCL_SOCKET_IFNAME",
                "lo", "MILLRACE_NET_DEVICES", "1");
        try (NetEndpoint endpoint = NetEndpoint.open(Configuration.ofPlugin(environment::get))) {
            assertEquals("test1", endpoint.device().toString());
            assertEquals(100_000, endpoint.device().speedMbps());
        }
    }

    @Test
    void theDeviceIsThatOfTheRails() {
        assertEquals("lo",
                NetEndpoint.device(Configuration.ofPlugin(Map.of("MILLRACE_SOCKET_ADDRESSES", "127.0.0.2")::get))
                        .toString());
    }
}
