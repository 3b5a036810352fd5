package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.TestOptions;

/** Mappings and descriptors are released. A close from any thread never lets another thread access unmapped memory. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class ShmResourcesTest {

    private static final int CONNECTIONS = 20;

    private static long descriptors() throws IOException {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            return open.count();
        }
    }

    private static long mappings() throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
            return lines.filter(line -> line.contains("millrace-")).count();
        }
    }

    @Test
    void aThousandConnectionsLeaveNothing() throws IOException {
        Assumptions.assumeTrue(Files.isDirectory(Path.of("/proc/self/fd")),
                "SKIPPED: leaks are counted in /proc, which is not there");
        try (ShmNetwork network = new ShmNetwork(TestOptions.ring(16 << 10, 4 << 10))) {
            connectAndClose(network, 10);
            long before = descriptors();
            long mappedBefore = mappings();
            connectAndClose(network, 1000);
            assertTrue(descriptors() - before < 10, () -> "1000 connections left descriptors open");
            // Files of other tests in this process, such as rings and traces, may still be mapped.
            long added = mappings() - mappedBefore;
            assertTrue(added < 100, () -> "1000 connections left " + added + " mappings");
        }
    }

    /**
     * Each end of a connection uses only one descriptor, because the program's files also count toward a process's
     * limit of descriptors.
     */
    @Test
    void anEndOfAConnectionHoldsOneDescriptor() throws IOException {
        Assumptions.assumeTrue(Files.isDirectory(Path.of("/proc/self/fd")),
                "SKIPPED: descriptors are counted in /proc, which is not there");
        List<Connected> open = new ArrayList<>();
        try (ShmNetwork network = new ShmNetwork(TestOptions.ring(16 << 10, 4 << 10))) {
            Listener listener = network.listen();
            open.add(Connected.make(network, listener, Connected.newKey()));
            long before = descriptors();
            for (int i = 0; i < CONNECTIONS; i++) {
                open.add(Connected.make(network, listener, Connected.newKey()));
            }
            assertEquals(2 * CONNECTIONS, descriptors() - before);
        } finally {
            open.forEach(Connected::close);
        }
    }

    private static void connectAndClose(ShmNetwork network, int times) {
        for (int i = 0; i < times; i++) {
            try (Connected ends = Connected.make(network, network)) {
                ends.sender().offer(new FrameHeader(), null, 0);
                ends.nextHeader();
            }
        }
    }

    @Test
    void connectionsThatAreAbortedUnderTheirUsersStopThemWithAnException() {
        ShmOptions options = TestOptions.ring(16 << 10, 1 << 10);
        try (ExecutorService threads = Executors.newFixedThreadPool(2); ShmNetwork network = new ShmNetwork(options)) {
            MemoryRegion memory = network.register(Arena.global().allocate(1 << 20));
            for (int round = 0; round < 30; round++) {
                abortWhileTwoThreadsMoveFrames(network, threads, memory, round);
            }
        }
    }

    private static void abortWhileTwoThreadsMoveFrames(ShmNetwork network, ExecutorService threads, MemoryRegion memory,
            int frames) {
        try (Connected ends = Connected.make(network, network)) {
            FrameHeader header = new FrameHeader();
            header.payloadBytes(100_000);
            CompletableFuture<ConnectionException> sending =
                    CompletableFuture.supplyAsync(() -> Connected.failureOf(() -> {
                        ends.sender().offer(header, memory, 0);
                        ends.sender().progress();
                    }), threads);
            CountDownLatch moving = new CountDownLatch(frames);
            CompletableFuture<ConnectionException> receiving =
                    CompletableFuture.supplyAsync(() -> Connected.failureOf(() -> {
                        if (ends.receiver().poll() != null) {
                            ends.receiver().accept(memory, 200_000);
                            moving.countDown();
                        }
                        ends.receiver().progress();
                    }), threads);
            assertDoesNotThrow(() -> moving.await());
            ends.sender().abort();
            assertTrue(sending.join().getMessage().contains("closed on this side"), sending.join().getMessage());
            ends.receiver().close();
            assertTrue(receiving.join().getMessage().matches("(?s).*(closed on this side|lost).*"),
                    receiving.join().getMessage());
        }
    }
}
