package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.gin.GinException;
import org.millrace.gin.GinMesh;
import org.millrace.gin.GinOptions;
import org.millrace.gin.Window;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;

/** Groups whose ranks share memory, or do not: bytes arrive the same way, and no file is left. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class GinStagingTest {

    private static final int BYTES = 24 << 20;

    /** Two ranks of one process, each with hardware of its own. */
    private static final class Ranks implements AutoCloseable {
        final Network[] networks = new Network[2];
        final Listener[] listeners = new Listener[2];
        final GinHardware[] hardware = new GinHardware[2];
        final GinGroup[] groups = new GinGroup[2];
        final Window[] windows = new Window[2];
        final MemorySegment[] memory = new MemorySegment[2];
        final Arena arena = Arena.ofShared();

        Ranks(String network, boolean... shared) throws Exception {
            for (int rank = 0; rank < 2; rank++) {
                networks[rank] = network.equals("shm") ? new ShmNetwork(ShmOptions.defaults()) : new SocketNetwork(SocketOptions.defaults());
                listeners[rank] = networks[rank].listen();
                hardware[rank] = new GinOnHost(shared[rank]);
                memory[rank] = arena.allocate(BYTES, 64);
            }
            byte[][] addresses = {listeners[0].address(), listeners[1].address()};
            List<Future<?>> both = new ArrayList<>();
            ExecutorService threads = Executors.newFixedThreadPool(2);
            for (int i = 0; i < 2; i++) {
                int rank = i;
                both.add(threads.submit(() -> {
                    GinMesh data = GinMesh.connect(networks[rank], listeners[rank], addresses, rank, 1, Duration.ofSeconds(30), () -> null);
                    GinMesh control = GinMesh.connect(networks[rank], listeners[rank], addresses, rank, 2, Duration.ofSeconds(30), () -> null);
                    groups[rank] = new GinGroup(rank, networks[rank], hardware[rank], data, control, GinOptions.defaults());
                    windows[rank] = groups[rank].register(memory[rank].address(), BYTES, 1);
                    return null;
                }));
            }
            for (Future<?> each : both) {
                each.get(60, TimeUnit.SECONDS);
            }
            threads.shutdown();
        }

        @Override
        public void close() {
            for (int rank = 0; rank < 2; rank++) {
                groups[rank].close();
                hardware[rank].close();
                listeners[rank].close();
                networks[rank].close();
            }
            arena.close();
        }
    }

    private static void await(BooleanSupplier condition) {
        while (!condition.getAsBoolean()) {
            Thread.onSpinWait();
        }
    }

    private static List<String> files() throws IOException {
        try (var all = Files.list(Path.of("/dev/shm"))) {
            return all.map(file -> file.getFileName().toString()).filter(name -> name.contains("-" + ProcessHandle.current().pid() + "-") && name.endsWith(".mem")).toList();
        }
    }

    private static long staged() {
        return CapturedLog.lines().stream().filter(line -> line.contains("are staged in memory shared with it")).count();
    }

    @ParameterizedTest
    @CsvSource({"shm, true, true", "socket, true, true", "shm, true, false", "socket, false, false"})
    void putsAndGetsArriveWhole(String network, boolean first, boolean second) throws Exception {
        CapturedLog.begin();
        Random random = new Random(11);
        try (Ranks ranks = new Ranks(network, first, second)) {
            assertEquals(first && second ? 2 : 0, staged(), () -> "" + CapturedLog.lines());
            assertEquals(List.of(), files(), "both have mapped the memory: its file is gone");
            byte[] bytes = new byte[BYTES / 2 - 64];
            random.nextBytes(bytes);
            MemorySegment.copy(bytes, 0, ranks.memory[0], ValueLayout.JAVA_BYTE, 64, bytes.length);
            GinGroup.Rma[] rma = {ranks.groups[0].createRma(1), ranks.groups[1].createRma(1)};
            Window window = ranks.windows[0];
            rma[0].queues().get(0).putAndSignal(1, window, 64, bytes.length, window, 64, window, 0, 5);
            await(() -> (long) ValueLayout.JAVA_LONG.varHandle().getAcquire(ranks.memory[1], 0L) == 5 || ranks.groups[1].communicator().failure() != null);
            ranks.groups[1].communicator().throwIfFailed();
            assertEquals(-1, MemorySegment.mismatch(ranks.memory[1], 64, BYTES / 2, MemorySegment.ofArray(bytes), 0, bytes.length));
            long get = rma[0].queues().get(0).get(1, window, 64, bytes.length, window, BYTES / 2);
            await(() -> rma[0].queues().get(0).isDone(1, (int) get) || ranks.groups[0].communicator().failure() != null);
            ranks.groups[0].communicator().throwIfFailed();
            assertEquals(-1, MemorySegment.mismatch(ranks.memory[0], BYTES / 2, BYTES - 64, MemorySegment.ofArray(bytes), 0, bytes.length));
        }
        assertEquals(List.of(), files());
    }

    @Test
    void aRankThatFailsWhileBytesAreStagedIsNamed() throws Exception {
        CapturedLog.begin();
        try (Ranks ranks = new Ranks("shm", true, true)) {
            assertEquals(2, staged());
            GinGroup.Rma rma = ranks.groups[0].createRma(1);
            Window window = ranks.windows[0];
            for (int i = 0; i < 50; i++) {
                rma.queues().get(0).put(1, window, 0, BYTES, window, 0);
            }
            ranks.groups[1].communicator().fail(new GinException("rank 1 was killed by the test"));
            await(() -> ranks.groups[0].communicator().failure() != null);
            Throwable failure = ranks.groups[0].communicator().failure();
            assertNotNull(failure);
            // by shared memory the end may be seen before the reason for it
            assertTrue(failure.getMessage().matches("(?s)rank 0( lost rank 1|: rank 1 has closed its end).*descriptor.*"), failure.getMessage());
        }
        assertEquals(List.of(), files());
    }
}
