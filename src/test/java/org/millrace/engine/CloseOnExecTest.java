package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.Connected;
import org.millrace.net.Network;
import org.millrace.net.plugin.TestNet;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;
import org.millrace.net.ucx.Ucx;
import org.millrace.net.ucx.UcxNetwork;

/** A native library may start a program by exec. This program inherits none of Millrace's descriptors. */
@Tag("slow")
class CloseOnExecTest {

    private static final long CLOSE_ON_EXEC = 02000000;
    /**
     * Link targets of Millrace's descriptors. Other descriptors are not compared, because the JVM opens class files at
     * any time.
     */
    private static final Pattern OURS = Pattern.compile("(socket|pipe|anon_inode):.*|/memfd:.*|.*/millrace-.*");

    @TempDir
    Path directory;

    /**
     * Returns the flags of each descriptor that may belong to Millrace. The key is the descriptor with its link target.
     */
    private static Map<String, Long> descriptors() throws IOException {
        Map<String, Long> flags = new HashMap<>();
        try (DirectoryStream<Path> open = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
            for (Path descriptor : open) {
                try {
                    String target = Files.readSymbolicLink(descriptor).toString();
                    Path info = Path.of("/proc/self/fdinfo").resolve(descriptor.getFileName());
                    if (OURS.matcher(target).matches()) {
                        flags.put(descriptor.getFileName() + " " + target,
                                Files.readAllLines(info)
                                        .stream()
                                        .filter(line -> line.startsWith("flags:"))
                                        .mapToLong(line -> Long.parseLong(line.substring(6).strip(), 8))
                                        .sum());
                    }
                } catch (NoSuchFileException closed) {
                    // the descriptor of the directory itself
                }
            }
        }
        return flags;
    }

    /** Returns the descriptors that are not in the given map and are not closed on exec. */
    private static Map<String, Long> inheritedSince(Map<String, Long> before) throws IOException {
        Map<String, Long> now = descriptors();
        now.keySet().removeAll(before.keySet());
        assertFalse(now.isEmpty());
        now.values().removeIf(flags -> (flags & CLOSE_ON_EXEC) != 0);
        return now;
    }

    @ParameterizedTest
    @ValueSource(strings = {"socket", "shm", "ucx", "plugin", "none"})
    void everyDescriptorOfACommunicatorIsClosedOnExec(String network) throws Exception {
        Ucx.assumeUsable(network);
        Map<String, String> settings = network.equals("none") ? EngineGroup.settings()
                : EngineGroup.settings("MILLRACE_NET", TestNet.setting(network), "NCCL_P2P_DISABLE", "1",
                        "NCCL_SHM_DISABLE", "1");
        Map<String, Long> before = descriptors();
        Map<String, Long> inherited = new HashMap<>();
        CyclicBarrier connected = new CyclicBarrier(2, () -> {
            try {
                inherited.putAll(inheritedSince(before));
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        });
        List<Throwable> thrown = EngineGroup.thrown(directory, 2, settings,
                communicator -> connected.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS));
        assertEquals(2, thrown.stream().filter(each -> each == null).count(), thrown.toString());
        assertEquals(Map.of(), inherited);
    }

    /** Runs in another process, because a process keeps native functions once they are bound. */
    @Test
    void whatUcxOpensBeforeThereIsACommunicatorIsClosedOnExec() throws Exception {
        Ucx.assumeUsable();
        Process child = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED", "-ea", "-cp", System.getProperty("java.class.path"),
                UcxAlone.class.getName()).redirectErrorStream(true).start();
        String said = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, child.waitFor(), said);
        assertTrue(said.contains("inherited: {}"), said);
    }

    static final class UcxAlone {

        private UcxAlone() {}

        public static void main(String[] args) throws IOException {
            Network finder = new SocketNetwork(SocketOptions.defaults());
            Map<String, Long> before = descriptors();
            try (Network network = new UcxNetwork(Optional.empty(), finder);
                    Connected ends = Connected.make(network, network)) {
                System.out.println(ends.sender() + " inherited: " + inheritedSince(before));
            }
        }
    }
}
