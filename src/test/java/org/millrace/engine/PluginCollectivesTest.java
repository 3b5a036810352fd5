package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.plugin.HostProgram;
import org.millrace.net.plugin.TestNet;
import org.millrace.net.plugin.TestNet.Count;

/**
 * Every operation over two network plugins. The first is a C plugin with all the unusual behavior that NCCL's rules
 * allow. The second is Millrace's own plugin, which implements isend and irecv with frames.
 */
@Tag("slow")
class PluginCollectivesTest {

    @TempDir
    Path directory;

    private static Map<String, String> settings(Path plugin, String algorithm, String buffers) {
        return EngineGroup.settings("MILLRACE_NET", "plugin:" + plugin, "NCCL_SOCKET_IFNAME", "lo", "NCCL_ALGO",
                algorithm, "NCCL_BUFFSIZE", buffers);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"2 | ring | 64K | 12 | recvs=8,devices=2", "3 | ring | 512K | 9 | recvs=4,late=3,busy=5,unordered",
                    "4 | tree | 64K | 8 | recvs=1,late=1,busy=3,drip=5000",
                    "2 | ring | 512K | 11 | recvs=2,late=1,unordered,limit=7000"})
    void everyRankGetsWhatTheReferenceSays(int ranks, String algorithm, String buffers, int version, String words)
            throws Exception {
        TestNet plugin = TestNet.version(version).with(words);
        EngineCollectivesTest.runAll(directory, ranks, settings(plugin.library(), algorithm, buffers))
                .forEach(failure -> assertNull(failure, () -> String.valueOf(failure)));
        assertEquals(0, plugin.count(Count.COMPLAINTS));
        assertEquals(words.contains("late"), plugin.count(Count.FAULTS) > 0);
    }

    @Test
    void aPluginThatFailsEndsAllRanksAndIsNamed() throws Exception {
        TestNet plugin = TestNet.version(12).with("fail=isend:700:2");
        List<Throwable> thrown = EngineCollectivesTest.runAll(directory, 3, settings(plugin.library(), "ring", "64K"));
        thrown.forEach(each -> assertNotNull(each));
        assertTrue(thrown.stream()
                .anyMatch(each -> String.valueOf(each).contains("the plugin's isend failed: " + "ncclSystemError (2)")),
                thrown::toString);
    }

    /** Runs in a separate process, because Millrace's plugin reads the environment. */
    @Test
    void everyOperationGoesOverMillracesOwnPlugin() throws Exception {
        Path output = directory.resolve("output");
        ProcessBuilder builder = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED", "-ea", "-cp",
                System.getProperty("java.class.path"), OwnPlugin.class.getName(), directory.toString(),
                HostProgram.library().toString());
        builder.environment().putAll(Map.of("MILLRACE_TAKEOVER", "0", "NCCL_SOCKET_IFNAME", "lo"));
        Process process = builder.redirectErrorStream(true).redirectOutput(output.toFile()).start();
        try {
            assertTrue(process.waitFor(100, TimeUnit.SECONDS), () -> "still running");
        } finally {
            process.destroyForcibly();
        }
        String said = Files.readString(output);
        assertEquals(0, process.exitValue(), said);
        assertTrue(said.contains("every rank got what the reference says"), said);
    }

    /** The ranks of this program are threads. Their network plugin uses the JVM that already runs in the process. */
    static final class OwnPlugin {

        private OwnPlugin() {}

        public static void main(String[] arguments) throws Exception {
            for (String buffers : List.of("64K", "1M")) {
                Path directory = Files.createDirectory(Path.of(arguments[0], buffers));
                EngineCollectivesTest.runAll(directory, 3, settings(Path.of(arguments[1]), "ring", buffers))
                        .forEach(failure -> assertNull(failure, () -> String.valueOf(failure)));
            }
            System.out.println("every rank got what the reference says");
            System.exit(0); // the plugin's threads belong to the JVM
        }
    }
}
