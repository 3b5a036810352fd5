package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Pending;
import org.millrace.net.TestOptions;

/** Rings in sealed memory, which no process can shorten, and rings in files where sealed memory is not available. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class SealedRingTest {

    private static final Path DESCRIPTORS = Path.of("/proc/self/fd");

    @TempDir
    Path directory;

    @BeforeEach
    void kernel() {
        assumeTrue(SharedFile.canBeSealedFor(ProcessIdentity.CURRENT), "this machine has no sealed memory");
    }

    private ShmOptions options(boolean sealed) {
        return sealed ? TestOptions.shm(directory) : TestOptions.files(directory);
    }

    /**
     * Returns this process's open descriptors as paths in /proc. Includes only descriptors of files that have the given
     * text in their path.
     */
    private static List<Path> open(String text) throws IOException {
        List<Path> found = new ArrayList<>();
        try (Stream<Path> all = Files.list(DESCRIPTORS)) {
            for (Path each : all.toList()) {
                try {
                    if (Files.readSymbolicLink(each).toString().contains(text)) {
                        found.add(each);
                    }
                } catch (IOException closed) {
                    // This is the descriptor of the listing itself, which is closed already.
                }
            }
        }
        return found;
    }

    private static void assertWorks(Connected ends) {
        for (int frame = 0; frame < 100; frame++) {
            FrameHeader header = new FrameHeader();
            header.word(0, frame);
            assertTrue(ends.sender().offer(header, null, 0));
            assertEquals(frame, ends.nextHeader().word(0));
            ends.receiver().accept(null, 0);
        }
    }

    /**
     * Another process of the user can open a sealed ring, but cannot shorten it. A shorter ring would cause SIGBUS at
     * both ends.
     */
    @Test
    void aRingCannotBeMadeShorter() throws IOException {
        List<Path> before = open("memfd:millrace-");
        try (ShmNetwork network = new ShmNetwork(options(true))) {
            Attempt attempt = Attempt.begin(network);
            List<Path> rings = open("memfd:millrace-");
            rings.removeAll(before);
            assertEquals(1, rings.size(), "for the listener's process");
            try (FileChannel attacker = FileChannel.open(rings.getFirst(), StandardOpenOption.WRITE);
                    Connected ends = attempt.await()) {
                assertThrows(IOException.class, () -> attacker.truncate(0));
                assertWorks(ends);
                try (Stream<Path> files = Files.list(directory)) {
                    assertTrue(files.allMatch(file -> file.toString().endsWith(".sock")), "no other file is needed");
                }
            }
        }
        List<Path> after = open("memfd:millrace-");
        after.removeAll(before);
        assertEquals(List.of(), after);
    }

    /**
     * Imitates containers that share the directory but no PID namespace. The two processes then use a file in the
     * shared directory.
     */
    @ParameterizedTest
    @CsvSource({"true, false", "false, true", "false, false"})
    void whereOneCannotHaveThemAFileServes(boolean connecting, boolean listening) throws IOException {
        try (ShmNetwork here = new ShmNetwork(options(connecting));
                ShmNetwork there = new ShmNetwork(options(listening));
                Connected ends = Connected.make(here, there)) {
            try (Stream<String> mappings = Files.lines(Path.of("/proc/self/maps"))) {
                assertEquals(2,
                        mappings.filter(line -> line.contains(directory + "/") && line.contains(".ring")).count());
            }
            assertWorks(ends);
        }
    }

    /** If only files are available, both ends report a file that was truncated. */
    @Test
    void aFileThatIsMadeShorterIsNamed() throws IOException {
        try (ShmNetwork network = new ShmNetwork(options(false))) {
            Attempt attempt = Attempt.begin(network);
            Path ring;
            try (Stream<Path> files = Files.list(directory)) {
                ring = files.filter(file -> file.toString().endsWith(".ring")).findFirst().orElseThrow();
            }
            try (FileChannel attacker = FileChannel.open(ring, StandardOpenOption.WRITE);
                    Connected ends = attempt.await()) {
                attacker.truncate(0);
                assertIsNamed(ends);
            }
        }
    }

    private static void assertIsNamed(Connected ends) {
        String sending = Connected.failureOf(() -> ends.sender().offer(new FrameHeader(), null, 0)).getMessage();
        assertTrue(sending.contains("truncated"), sending);
        String receiving = Connected.failureOf(() -> ends.receiver().poll()).getMessage();
        assertTrue(receiving.contains("truncated"), receiving);
    }

    /** A connection attempt whose client has already created its ring. */
    private record Attempt(Listener listener, Pending<FrameSender> connecting, Pending<FrameReceiver> accepting) {

        static Attempt begin(ShmNetwork network) {
            Listener listener = network.listen();
            ConnectionKey key = Connected.newKey();
            Attempt attempt = new Attempt(listener, network.connect(listener.address(), key), listener.expect(key));
            assertNull(attempt.connecting.poll());
            return attempt;
        }

        Connected await() {
            return Connected.await(listener, connecting, accepting);
        }
    }
}
