package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings.Kernels;
import org.millrace.plugin.host.CallingLibrary;

class UnpackSettingsTest {

    private static PluginConfiguration read(UnaryOperator<String> environment) {
        return PluginConfiguration.of(CallingLibrary.UNTOLD, Configuration.ofPlugin(environment));
    }

    @Test
    void offByDefaultAndThenNothingIsSetForIt() {
        assertFalse(read(Map.<String, String>of()::get).unpack() != Kernels.NONE);
        assertFalse(read(Map.<String, String>of()::get).toSet().containsKey("NCCL_PAT_ENABLE"));
    }

    @Test
    void whatKernelsThatUnpackCannotDoIsTurnedOffWithAndWithoutTheTakeover() {
        for (String takeover : new String[] {"0", "1"}) {
            Map<String, String> set = read(Map.of("MILLRACE_UNPACK", "1", "MILLRACE_TAKEOVER", takeover)::get).toSet();
            assertEquals("0", set.get("NCCL_PAT_ENABLE"));
            assertEquals("Ring", set.get("NCCL_ALGO"));
            assertEquals("0", set.get("NCCL_NET_SHARED_BUFFERS"));
        }
        Map<String, String> set =
                read(Map.of("MILLRACE_UNPACK", "1", "NCCL_ALGO", "Tree", "NCCL_PAT_ENABLE", "1")::get).toSet();
        assertFalse(set.containsKey("NCCL_ALGO") || set.containsKey("NCCL_PAT_ENABLE"),
                "the user's word counts: " + set);
    }

    @ParameterizedTest
    @CsvSource({"MILLRACE_UNPACK, yes", "MILLRACE_UNPACK_MIB, 0", "MILLRACE_UNPACK_MIB, 4097",
            "MILLRACE_UNPACK_MIB, 64MiB", "MILLRACE_UNPACK_MIB, -1", "MILLRACE_UNPACK_MIB, 99999999999999999999",
            "NCCL_NET_SHARED_BUFFERS, 1", "NCCL_P2P_LL_THRESHOLD, -1"})
    void whatMakesItImpossibleIsNamed(String name, String value) {
        Map<String, String> environment =
                new java.util.HashMap<>(Map.of("MILLRACE_UNPACK", "1", "MILLRACE_TAKEOVER", "0"));
        environment.put(name, value);
        ConfigurationException refused = assertThrows(ConfigurationException.class, () -> read(environment::get));
        assertTrue(refused.getMessage().contains(name + "=" + value), refused.getMessage());
    }

    /**
     * NCCL_NET_DEVICE_UNPACK_ENABLED is another name for MILLRACE_UNPACK. The plugin refuses any size threshold other
     * than 0.
     */
    @ParameterizedTest
    @CsvSource({"1, , GPU", "0, , NONE", "1, host, HOST", "0, 0, NONE", "0, 1, ", "1, 0, "})
    void theNameOfTheDocumentsWorks(String theirs, String ours, Kernels expected) {
        Map<String, String> environment = new java.util.HashMap<>(Map.of("NCCL_NET_DEVICE_UNPACK_ENABLED", theirs));
        if (ours != null) {
            environment.put("MILLRACE_UNPACK", ours);
        }
        if (expected == null) {
            String refused = assertThrows(ConfigurationException.class, () -> read(environment::get)).getMessage();
            assertTrue(refused.contains("NCCL_NET_DEVICE_UNPACK_ENABLED=" + theirs), refused);
        } else {
            assertEquals(expected, read(environment::get).unpack());
        }
        environment.put("NCCL_NET_DEVICE_UNPACK_THRESHOLD", "4096");
        String refused = assertThrows(ConfigurationException.class, () -> read(environment::get)).getMessage();
        assertTrue(refused.contains("NCCL_NET_DEVICE_UNPACK_THRESHOLD=4096 is not usable; allowed: 0, as a kernel"),
                refused);
    }
}
