package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.Route;
import org.millrace.file.FileName;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.TraceFiles;

/**
 * Ranks in separate PID namespaces, like ranks in containers that share {@code /dev/shm}. Each rank has process number
 * 1 and cannot open the descriptors of another rank, so the ranks communicate through files.
 */
@Timeout(180)
@Tag("slow")
@Tag("root")
class PidNamespaceTest {

    private static final List<String> OWN_NAMESPACE =
            List.of("unshare", "--pid", "--fork", "--kill-child", "--mount-proc");
    private static final Path SHARED = Path.of("/dev/shm");
    private static final int LARGEST = 1 << 17;

    @TempDir
    Path folder;
    private final List<Process> children = new ArrayList<>();

    @BeforeAll
    static void allowed() throws Exception {
        String refusal;
        try {
            List<String> command = new ArrayList<>(OWN_NAMESPACE);
            command.add("true");
            Process tried = new ProcessBuilder(command).redirectErrorStream(true).start();
            refusal = tried.inputReader().lines().collect(Collectors.joining(" "));
            assumeTrue(tried.waitFor() == 0, () -> "no PID namespace of one's own: " + refusal);
        } catch (IOException e) {
            assumeTrue(false, "no PID namespace of one's own: " + e.getMessage());
        }
    }

    @AfterEach
    void endChildren() throws InterruptedException {
        for (Process child : children) { // each child must end, because other tests count this process's children
            child.destroyForcibly().waitFor(30, TimeUnit.SECONDS);
        }
    }

    private BufferedReader start(Class<?> program, int rank, List<String> settings) throws IOException {
        List<String> command = new ArrayList<>(OWN_NAMESPACE);
        Collections.addAll(command, Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx64m", "--enable-native-access=ALL-UNNAMED", "-cp",
                System.getProperty("java.class.path"), program.getName(), folder.toString(), "" + rank, "2");
        command.addAll(settings);
        Process child = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        children.add(child);
        return child.inputReader(StandardCharsets.UTF_8);
    }

    @ParameterizedTest
    @CsvSource({"NCCL_SHM_LOCALITY=1, SHM", "NCCL_SHM_LOCALITY=2, SHM", "NCCL_SHM_USE_CUDA_MEMCPY=1, SHM by copy",
            "MILLRACE_NET=shm, NET shm"})
    void twoOfThemExchangeWhatIsRight(String setting, String transport) throws Exception {
        BufferedReader zero = start(Rank.class, 0, List.of(setting));
        BufferedReader one = start(Rank.class, 1, List.of(setting));
        String first = zero.readLine();
        String second = one.readLine();
        assertNotEquals(first, second, "they are in one namespace");
        String expected = "process 1, [" + transport + "], 0 wrong";
        assertEquals(expected, zero.readLine());
        assertEquals(expected, one.readLine());
        for (Process child : children) {
            assertTrue(child.waitFor(60, TimeUnit.SECONDS));
            assertEquals(0, child.exitValue());
        }
        assertEquals(List.of(), filesOf(first));
        assertEquals(List.of(), filesOf(second));
    }

    /** Millrace distinguishes two processes that both have process number 1, and names the killed process. */
    @Test
    void aKilledOneIsNamed() throws Exception {
        BufferedReader zero = start(AllReduceRank.class, 0, List.of("NCCL_BUFFSIZE=64K"));
        BufferedReader one = start(AllReduceRank.class, 1, List.of("NCCL_BUFFSIZE=64K"));
        assertEquals("running", zero.readLine());
        assertEquals("running", one.readLine());
        children.get(1).destroyForcibly();
        String told = zero.readLine();
        assertTrue(told != null && told.contains("rank 1 (pid 1 on ") && told.contains("is gone"), told);
        assertEquals("left []", zero.readLine());
        assertTrue(children.get(0).waitFor(60, TimeUnit.SECONDS));
        assertEquals(0, children.get(0).exitValue());
    }

    /**
     * The trace of a killed process stays for an hour. The trace of a living process stays as long as the process
     * lives.
     */
    @Test
    void theTraceOfAKilledOneIsSweptFromAnotherNamespace() throws Exception {
        start(AllReduceRank.class, 0, List.of("NCCL_BUFFSIZE=64K"));
        BufferedReader one = start(AllReduceRank.class, 1, List.of("NCCL_BUFFSIZE=64K"));
        assertEquals("running", one.readLine());
        Process living = children.get(0);
        Process killed = children.get(1);
        Path ofLiving = traceOf(living);
        Path ofKilled = traceOf(killed);
        killed.destroyForcibly().waitFor();
        await("the killed one's child has ended, too", () -> TraceFiles.isOwnerDead(ofKilled, ownerOf(ofKilled)));
        FileTime longAgo = FileTime.from(Instant.now().minus(Duration.ofHours(2)));
        Files.setLastModifiedTime(ofLiving, longAgo);
        Files.setLastModifiedTime(ofKilled, longAgo);
        TraceFiles.sweep(SHARED);
        assertFalse(Files.exists(ofKilled), "its process is gone");
        assertTrue(Files.exists(ofLiving), "its process lives");
    }

    /** Returns the trace file of a process in a new namespace. Waits until the process has locked this file. */
    private static Path traceOf(Process unshare) throws Exception {
        String namespace = Files.readSymbolicLink(Path.of("/proc/" + unshare.pid() + "/ns/pid_for_children"))
                .toString()
                .replaceAll("\\D", "");
        AtomicReference<Path> found = new AtomicReference<>();
        await("a trace of a process of namespace " + namespace, () -> {
            found.set(lockedOf(namespace));
            return found.get() != null;
        });
        return found.get();
    }

    private static Path lockedOf(String namespace) {
        try (DirectoryStream<Path> files =
                Files.newDirectoryStream(SHARED, "millrace-*-" + namespace + "." + FileName.TRACE)) {
            for (Path file : files) {
                ByteBuffer header = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
                if (TraceFiles.isLocked(header) && !TraceFiles.isOwnerDead(file, ownerOf(file))) {
                    return file;
                }
            }
            return null;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static ProcessIdentity ownerOf(Path file) {
        return FileName.parse(file.getFileName().toString()).owner();
    }

    private static void await(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(EngineGroup.TIMEOUT_SECONDS);
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() - end < 0, what);
            LockSupport.parkNanos(1_000_000);
        }
    }

    /**
     * Returns the files in the shared directory for a namespace's memory, rings and sockets. Omits traces, because the
     * trace of a killed process stays for an hour, and Linux reuses the numbers of ended namespaces.
     */
    private static List<String> filesOf(String namespace) throws IOException {
        try (Stream<Path> files = Files.list(SHARED)) {
            return files.map(file -> file.getFileName().toString())
                    .filter(name -> name.startsWith("millrace-") && name.contains(namespace)
                            && !name.endsWith(".trace"))
                    .toList();
        }
    }

    /**
     * A rank that prints the number of its namespace, then the transport of its operations and the number of wrong
     * elements.
     */
    static final class Rank {

        private Rank() {}

        /** Runs the rank. Arguments: directory, rank, size, a setting as NAME=VALUE. */
        public static void main(String[] arguments) throws Exception {
            int rank = Integer.parseInt(arguments[1]);
            System.out.println(Files.readSymbolicLink(Path.of("/proc/self/ns/pid")).toString().replaceAll("\\D", ""));
            try (Communicator communicator = EngineGroup.join(Path.of(arguments[0]), rank,
                    Integer.parseInt(arguments[2]), EngineGroup.settings(arguments[3].split("=", 2)))) {
                long wrong = 0;
                for (int count : new int[] {1, 1000, LARGEST, 3, LARGEST - 1}) {
                    wrong += wrong(communicator, rank, count);
                }
                System.out.println("process " + ProcessHandle.current().pid() + ", "
                        + communicator.route().map(Route::transports).orElse(List.of()) + ", " + wrong + " wrong");
            }
        }

        private static long wrong(Communicator communicator, int rank, int count) {
            try (Arena arena = Arena.ofShared(); org.millrace.DeviceStream stream = communicator.device().newStream()) {
                MemorySegment mine = communicator.device().allocate(8L * count, arena);
                MemorySegment all = communicator.device().allocate(16L * count, arena);
                MemorySegment sum = communicator.device().allocate(8L * count, arena);
                for (int i = 0; i < count; i++) {
                    mine.setAtIndex(ValueLayout.JAVA_LONG, i, value(rank, i));
                }
                communicator.allGather(mine, all, count, DataType.INT64, stream);
                communicator.allReduce(mine, sum, count, DataType.INT64, ReduceOp.SUM, stream);
                stream.synchronize(Duration.ofSeconds(EngineGroup.TIMEOUT_SECONDS));
                long wrong = 0;
                for (int i = 0; i < count; i++) {
                    wrong += all.getAtIndex(ValueLayout.JAVA_LONG, i) == value(0, i) ? 0 : 1;
                    wrong += all.getAtIndex(ValueLayout.JAVA_LONG, count + i) == value(1, i) ? 0 : 1;
                    wrong += sum.getAtIndex(ValueLayout.JAVA_LONG, i) == value(0, i) + value(1, i) ? 0 : 1;
                }
                return wrong;
            }
        }

        private static long value(int rank, int index) {
            return 1_000_003L * index + 17L * rank;
        }
    }
}
