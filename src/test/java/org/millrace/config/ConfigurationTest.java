package org.millrace.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.config.Settings.LogSubsystem;

class ConfigurationTest {

    private final Map<String, String> environment = new HashMap<>();
    private final Properties properties = new Properties();
    private final Map<String, String> overrides = new HashMap<>();

    private Configuration load() {
        return Configuration.load(environment, properties, overrides);
    }

    private String refusal() {
        return assertThrows(ConfigurationException.class, this::load).getMessage();
    }

    @Test
    void nothingSetGivesDefaults() {
        Configuration configuration = load();
        for (Setting<?> setting : Settings.all()) {
            assertEquals(setting.defaultValue(), configuration.get(setting), setting.name());
            assertEquals("default", configuration.origin(setting).toString(), setting.name());
        }
    }

    @Test
    void theRunIsTheLaunchersUnlessItIsSet() {
        environment.put("TORCHELASTIC_RUN_ID", "none");
        assertEquals("", load().runId());
        environment.put("SLURM_JOB_ID", "7");
        assertEquals("7", load().runId());
        environment.put("PMIX_NAMESPACE", "prterun-a-1@1");
        assertEquals("prterun-a-1@1", load().runId());
        properties.setProperty("millrace.run.id", "mine");
        assertEquals("mine", load().runId());
    }

    @Test
    void overrideBeatsPropertyBeatsEnvironmentBeatsDefault() {
        environment.put("NCCL_BUFFSIZE", "1M");
        assertEquals(1L << 20, load().get(Settings.BUFFER_SIZE));
        assertEquals("environment NCCL_BUFFSIZE", load().origin(Settings.BUFFER_SIZE).toString());
        properties.setProperty("nccl.buffsize", "2M");
        assertEquals(2L << 20, load().get(Settings.BUFFER_SIZE));
        assertEquals("property nccl.buffsize", load().origin(Settings.BUFFER_SIZE).toString());
        overrides.put("NCCL_BUFFSIZE", "8M");
        assertEquals(8L << 20, load().get(Settings.BUFFER_SIZE));
        assertEquals("argument NCCL_BUFFSIZE", load().origin(Settings.BUFFER_SIZE).toString());
    }

    @Test
    void everyKindOfValueIsRead() {
        environment.put("MILLRACE_NCCL_LIBRARY", "/opt/nccl/lib");
        environment.put("MILLRACE_STALL_DEADLINE", "1500ms");
        environment.put("NCCL_MAX_NCHANNELS", " 4 ");
        environment.put("MILLRACE_NET", "Socket");
        environment.put("NCCL_DEBUG", "info");
        Configuration configuration = load();
        assertEquals(Optional.of(Path.of("/opt/nccl/lib")), configuration.get(Settings.NCCL_LIBRARY));
        assertEquals(Duration.ofMillis(1500), configuration.get(Settings.STALL_DEADLINE));
        assertEquals(Optional.of(4), configuration.get(Settings.MAX_CHANNELS));
        assertEquals("socket", configuration.get(Settings.NETWORK));
        assertEquals(Settings.LogLevel.INFO, configuration.get(Settings.LOG_LEVEL));
    }

    @Test
    void debugSubsystemsAreReadAsNcclReadsThem() {
        environment.put("NCCL_DEBUG_SUBSYS", "net, reg");
        assertEquals(Set.of(LogSubsystem.NET, LogSubsystem.REG), load().get(Settings.LOG_SUBSYSTEMS));
        assertEquals("NET,REG", load().show(Settings.LOG_SUBSYSTEMS));
        environment.put("NCCL_DEBUG_SUBSYS", "^ALL");
        assertEquals(Set.of(), load().get(Settings.LOG_SUBSYSTEMS));
        environment.put("NCCL_DEBUG_SUBSYS", "^NET");
        assertEquals(LogSubsystem.values().length - 1, load().get(Settings.LOG_SUBSYSTEMS).size());
        environment.put("NCCL_DEBUG_SUBSYS", "NET,LOUD");
        assertTrue(assertThrows(ConfigurationException.class, this::load).getMessage()
                .contains("NCCL_DEBUG_SUBSYS=NET,LOUD is not usable; allowed: INIT, COLL"));
    }

    @ParameterizedTest
    @CsvSource({", , STEPS", "1, , STEPS", "0, , COUNTERS", ", counters, COUNTERS", "1, steps, STEPS",
            "0, counters, COUNTERS", "0, off, OFF", "1, off, ", "1, counters, ", "0, steps, "})
    void ncclsProxyTraceSelectsWhetherStepsAreRecorded(String proxyTrace, String trace, Settings.TraceDetail expected) {
        environment.put("NCCL_PROXY_TRACE", proxyTrace == null ? "" : proxyTrace);
        environment.put("MILLRACE_TRACE", trace == null ? "" : trace);
        if (expected == null) {
            String refused = assertThrows(ConfigurationException.class, this::load).getMessage();
            assertTrue(
                    refused.contains("NCCL_PROXY_TRACE=" + proxyTrace) && refused.contains("MILLRACE_TRACE=" + trace),
                    refused);
        } else {
            assertEquals(expected, load().traceDetail());
        }
    }

    @Test
    void emptyCountsAsUnset() {
        environment.put("NCCL_BUFFSIZE", "1M");
        properties.setProperty("nccl.buffsize", "");
        overrides.put("NCCL_BUFFSIZE", " ");
        assertEquals("environment NCCL_BUFFSIZE", load().origin(Settings.BUFFER_SIZE).toString());
    }

    @Test
    void laterChangesOfTheSourcesAreNotVisible() {
        environment.put("NCCL_BUFFSIZE", "1M");
        Configuration configuration = load();
        environment.put("NCCL_BUFFSIZE", "2M");
        assertEquals(1L << 20, configuration.get(Settings.BUFFER_SIZE));
    }

    @Test
    void foreignNamesAreIgnored() {
        environment.put("NCCL_ALGO", "Ring");
        environment.put("PATH", "/bin");
        properties.setProperty("nccl.algo", "Ring");
        properties.setProperty("java.home", "/");
        load();
    }

    /**
     * The program and the plugin may share an environment. The program ignores the settings of the plugin, such as the
     * location of the Java to start.
     */
    @Test
    void variablesOfThePluginAreNotUnknown() {
        environment.put("MILLRACE_JAVA_HOME", "/opt/java");
        environment.put("MILLRACE_GIN_DIRECT", "0");
        load();
    }

    @Test
    void unknownNamesAreRefusedWithTheNearest() {
        environment.put("MILLRACE_NETT", "socket");
        assertTrue(refusal().contains("environment MILLRACE_NETT; did you mean MILLRACE_NET?"), refusal());
        assertFalse(refusal().contains("NCCL_PROXY_IDLE_SLEEP_US"), "the nearest only: " + refusal());
        environment.clear();
        properties.setProperty("millrace.stall.dedline", "1s");
        assertTrue(refusal().contains("property millrace.stall.dedline; did you mean millrace.stall.deadline?"),
                refusal());
        properties.clear();
        overrides.put("NCCL_BUFSIZE", "1M");
        assertTrue(refusal().contains("setting: NCCL_BUFSIZE; did you mean NCCL_BUFFSIZE?"), refusal());
        overrides.clear();
        overrides.put("COMPLETELY_DIFFERENT", "1M");
        assertFalse(refusal().contains("did you mean"), refusal());
        assertTrue(refusal().contains("NCCL_PROXY_IDLE_SLEEP_US"), "lists what there is: " + refusal());
    }

    @Test
    void unusableValuesAreRefusedTogetherWithTheAllowedValues() {
        environment.put("NCCL_MAX_NCHANNELS", "65");
        environment.put("MILLRACE_NET", "pigeon");
        properties.setProperty("nccl.buffsize", "4097");
        overrides.put("MILLRACE_STALL_DEADLINE", "30");
        String message = refusal();
        assertTrue(
                message.contains(
                        "environment NCCL_MAX_NCHANNELS=65 is not usable; allowed: a whole number from 1 to 64"),
                message);
        assertTrue(message.contains("MILLRACE_NET=pigeon is not usable; allowed: auto, shm, socket, ucx"), message);
        assertTrue(message.contains(
                "property nccl.buffsize=4097 is not usable; allowed: a number of bytes from 32K to 1G, a multiple"
                        + " of 32K"),
                message);
        assertTrue(message.contains("MILLRACE_STALL_DEADLINE=30 is not usable; allowed: a time"), message);
    }

    @Test
    void fewestChannelsMustNotExceedMost() {
        environment.put("NCCL_MIN_NCHANNELS", "4");
        environment.put("NCCL_MAX_NCHANNELS", "4");
        load();
        overrides.put("NCCL_MAX_NCHANNELS", "2");
        assertTrue(refusal().contains("environment NCCL_MIN_NCHANNELS=4 is more than NCCL_MAX_NCHANNELS=2"), refusal());
    }

    @Test
    void secretsAreReadAndNotShown() {
        assertEquals("", load().show(Settings.SECRET));
        environment.put("MILLRACE_SECRET", "swordfish");
        assertEquals("swordfish", load().get(Settings.SECRET));
        assertFalse(load().show(Settings.SECRET).contains("swordfish"));
        assertTrue(load().show(Settings.SECRET).contains("hidden"));
    }

    @Test
    void showWritesValuesAsTheyAreRead() {
        overrides.put("NCCL_BUFFSIZE", "8388608");
        overrides.put("NCCL_MIN_NCHANNELS", "2");
        assertEquals("8M", load().show(Settings.BUFFER_SIZE));
        assertEquals("2", load().show(Settings.MIN_CHANNELS));
        assertEquals("unset", load().show(Settings.MAX_CHANNELS));
        assertEquals("30s", load().show(Settings.CONNECT_DEADLINE));
    }
}
