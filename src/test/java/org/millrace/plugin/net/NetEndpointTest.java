package org.millrace.plugin.net;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Pending;
import org.millrace.net.plugin.TestNet;
import org.millrace.plugin.HostProgram;
import org.millrace.plugin.shim.CapturedLog;

/** Which connections the settings of a user of the plugin make. */
class NetEndpointTest {

    @BeforeEach
    void capture() {
        CapturedLog.begin();
    }

    /** What a connection of this process to itself says that it is. */
    private static String connection(Map<String, String> environment) {
        try (NetEndpoint endpoint = NetEndpoint.open(Configuration.ofPlugin(environment::get))) {
            ConnectionKey key = new ConnectionKey(1, 2);
            try (Pending<FrameReceiver> accepting = endpoint.listener().expect(key);
                    Pending<FrameSender> connecting = endpoint.network().connect(endpoint.listener().address(), key)) {
                FrameSender sender = null;
                FrameReceiver receiver = null;
                while (sender == null || receiver == null) {
                    sender = sender == null ? connecting.poll() : sender;
                    receiver = receiver == null ? accepting.poll() : receiver;
                    Thread.onSpinWait();
                }
                String name = sender.toString();
                sender.close();
                receiver.close();
                return name;
            }
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
