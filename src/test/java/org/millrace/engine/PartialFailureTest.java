package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.example.millrace.unix.UnixSocketTransport;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.millrace.MillraceException;
import org.millrace.net.auto.NetworkOptions;

/** Any phase of a connection's set-up fails, on either end. Afterwards no file, mapping or descriptor remains. */
class PartialFailureTest {

    private static final Map<String, Map<String, String>> TRANSPORTS =
            Map.of("P2P", Map.of("NCCL_P2P_USE_CUDA_MEMCPY", "1"), "SHM",
                    Map.of("NCCL_P2P_DISABLE", "1", "NCCL_SHM_USE_CUDA_MEMCPY", "1", "NCCL_SHM_MEMCPY_MODE", "3"),
                    "UNIX", Map.of(), "NET", Map.of("NCCL_P2P_DISABLE", "1", "NCCL_SHM_DISABLE", "1"));

    @TempDir
    Path directory;

    private static final Path TEMPORARY = Path.of(System.getProperty("java.io.tmpdir"));
    /**
     * Prefix of the directories that the example transport creates in this process. Other processes may use this
     * transport at the same time.
     */
    private static final String OURS = "example-unix-" + ProcessHandle.current().pid() + "-";

    /**
     * Returns the resources of this process that would show a leak: files by name, mappings by line, sockets by number.
     * The test compares names and not counts, because garbage of earlier tests may be released at any time.
     */
    private Set<String> holdings() throws IOException {
        Set<String> held = mappings();
        try (Stream<Path> here = Files.list(directory);
                Stream<Path> temporary = Files.list(TEMPORARY);
                Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
            Stream.concat(here, temporary.filter(file -> file.getFileName().toString().startsWith(OURS)))
                    .map(Path::toString)
                    .forEach(held::add);
            descriptors.flatMap(PartialFailureTest::ours).forEach(held::add);
        }
        return held;
    }

    private static Set<String> mappings() throws IOException {
        try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
            return maps.filter(line -> line.contains("millrace-") && !isTrace(line))
                    .map(line -> line.replace(" (deleted)", ""))
                    .collect(Collectors.toCollection(TreeSet::new));
        }
    }

    /**
     * Returns whether a file descriptor refers to the file in which the process traces its connections. The trace stays
     * open until the process ends, even if a test has deleted the trace's directory.
     */
    private static boolean isTrace(String target) {
        return target.replace(" (deleted)", "").endsWith(".trace");
    }

    /** Returns sockets and shared files. The JVM also opens jars and similar files at any time. */
    private static Stream<String> ours(Path descriptor) {
        try {
            String target = Files.readSymbolicLink(descriptor).toString();
            return target.startsWith("socket:") || target.contains("millrace-") && !isTrace(target) ? Stream.of(target)
                    : Stream.empty();
        } catch (IOException closedMeanwhile) {
            return Stream.empty();
        }
    }

    private void assertNothingMoreThan(Set<String> before) throws IOException {
        Set<String> more = holdings();
        more.removeAll(before);
        assertEquals(Set.of(), more);
    }

    static List<Arguments> faults() {
        List<Arguments> faults = new ArrayList<>();
        for (String transport : List.of("P2P", "SHM", "NET", "UNIX")) {
            for (FailingTransport.Phase phase : FailingTransport.Phase.values()) {
                for (boolean afterwards : new boolean[] {false, true}) {
                    for (boolean onSender : new boolean[] {false, true}) {
                        faults.add(Arguments.of(transport, phase, afterwards, onSender));
                    }
                }
            }
        }
        return faults;
    }

    @ParameterizedTest
    @MethodSource("faults")
    void everythingIsFreed(String transport, FailingTransport.Phase phase, boolean afterwards, boolean onSender)
            throws Exception {
        try (TwoRanks warm = ranks(transport, false, phase, afterwards, onSender)) {
            warm.connect();
        }
        Set<String> before = holdings();
        int blocks = P2pTransport.ProcessMemory.blocks();
        try (TwoRanks ranks = ranks(transport, true, phase, afterwards, onSender)) {
            RuntimeException failure = assertThrows(MillraceException.class, ranks::connect);
            assertInstanceOf(FailingTransport.Planted.class, failure.getCause(), failure.toString());
            assertTrue(failure.getMessage()
                    .contains((onSender ? "rank 0 -> rank 1" : "rank 1 <- rank 0") + ", channel 0 over " + transport),
                    failure.getMessage());
        }
        assertNothingMoreThan(before);
        assertEquals(blocks, P2pTransport.ProcessMemory.blocks(), "memory of this process");
    }

    @AfterEach
    void withoutTheExample() {
        System.clearProperty(UnixSocketTransport.ENABLE);
    }

    private TwoRanks ranks(String transport, boolean fails, FailingTransport.Phase phase, boolean afterwards,
            boolean onSender) {
        System.setProperty(UnixSocketTransport.ENABLE, "" + transport.equals("UNIX"));
        return new TwoRanks(directory, TRANSPORTS.get(transport), NetworkOptions.NetworkChoice.SHM,
                each -> fails && each.name().equals(transport) ? new FailingTransport(each, phase, afterwards, onSender)
                        : each);
    }

    /** Shows that the previous test can fail: the resources of an open connection are counted. */
    @Test
    void aConnectionHoldsSomething() throws Exception {
        int blocks = P2pTransport.ProcessMemory.blocks();
        try (TwoRanks ranks = ranks("P2P", false, FailingTransport.Phase.SETUP, false, false)) {
            ranks.connect();
            assertEquals(blocks + 1, P2pTransport.ProcessMemory.blocks());
        }
        Set<String> before = holdings();
        try (TwoRanks ranks = ranks("SHM", false, FailingTransport.Phase.SETUP, false, false)) {
            Set<String> mappings = mappings();
            ranks.connect();
            Set<String> more = mappings();
            more.removeAll(mappings);
            assertEquals(2, more.size(), "one mapping on each side");
            try (Stream<Path> files = Files.list(directory)) {
                assertTrue(files.noneMatch(file -> file.toString().endsWith(".mem")),
                        "the file is deleted once both have it");
            }
        }
        assertNothingMoreThan(before);
    }
}
