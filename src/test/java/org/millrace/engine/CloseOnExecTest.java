package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.plugin.TestNet;
import org.millrace.net.ucx.Ucx;

/** What a program gets of this process's descriptors that a native library executes: nothing. */
@Tag("slow")
class CloseOnExecTest {

    private static final long CLOSE_ON_EXEC = 02000000;
    /** Beside these the JVM opens classes, whenever it likes. */
    private static final Pattern OURS = Pattern.compile("(socket|pipe|anon_inode):.*|/memfd:.*|.*/millrace-.*");

    @TempDir
    Path directory;

    /** What may be ours, by descriptor and target. */
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
                    // the directory's own
                }
            }
        }
        return flags;
    }

    @ParameterizedTest
    @ValueSource(strings = {"socket", "shm", "ucx", "plugin", "none"})
    void everyDescriptorOfACommunicatorIsClosedOnExec(String network) throws Exception {
        Ucx.assumeUsable(network);
        Map<String, String> settings = network.equals("none") ? EngineGroup.settings()
                : EngineGroup.settings("MILLRACE_NET", TestNet.setting(network), "NCCL_P2P_DISABLE", "1",
                        "NCCL_SHM_DISABLE", "1");
        Map<String, Long> before = descriptors();
        Map<String, Long> now = new HashMap<>();
        CyclicBarrier connected = new CyclicBarrier(2, () -> {
            try {
                now.putAll(descriptors());
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        });
        List<Throwable> thrown = EngineGroup.thrown(directory, 2, settings,
                communicator -> connected.await(EngineGroup.PATIENCE_SECONDS, TimeUnit.SECONDS));
        assertEquals(2, thrown.stream().filter(each -> each == null).count(), thrown.toString());
        now.keySet().removeAll(before.keySet());
        assertFalse(now.isEmpty());
        now.values().removeIf(flags -> (flags & CLOSE_ON_EXEC) != 0);
        assertEquals(Map.of(), now);
    }
}
