package org.millrace.plugin.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.abi.NetDeviceHandle;
import org.millrace.abi.gin.GinCells;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinGpuContext;
import org.millrace.abi.gin.GinIndices;
import org.millrace.abi.gin.GinOp;
import org.millrace.abi.gin.GinQueueMemory;
import org.millrace.ffi.device.ncclGinProxyGpuCtx_v2_t;
import org.millrace.gin.GinOptions;
import org.millrace.gin.Window;
import org.millrace.net.Connected;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.connection.FullMesh;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketOptions;
import org.millrace.net.ucx.Ucx;
import org.millrace.plugin.host.CapturedLog;
import org.millrace.plugin.host.NativeMemory;

/**
 * Four ranks run as four hosts, as one host, and as two hosts of two ranks each. Data within a host passes through
 * shared memory, other data crosses the network, and all data arrives.
 */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class GinHostsTest {

    private static final GinDescriptorFormat FORMAT = GinDescriptorFormat.V30;
    private static final int RANKS = 4;
    private static final int CONTEXTS = 2;
    private static final int QUEUE_SIZE = 16;
    private static final int PUTS = 60;
    private static final int MAX_BYTES = 3 << 20;
    private static final int PLACES = 1 << 23;
    private static final int SIGNALS = RANKS + 1;
    private static final int MAX_SIGNALS = 100_000;
    /** Size of a rank's window: the source of the rank's own puts, then a range for the puts of each rank. */
    private static final int WINDOW = (RANKS + 1) * PLACES;

    private final Network[] networks = new Network[RANKS];
    private final Listener[] listeners = new Listener[RANKS];
    private final HostGinDevice[] hardware = new HostGinDevice[RANKS];
    private final GinGroup[] groups = new GinGroup[RANKS];
    private final GinGroup.Served[] served = new GinGroup.Served[RANKS];
    private final Window[] windows = new Window[RANKS];
    private final MemorySegment[] memory = new MemorySegment[RANKS];
    private final Arena arena = Arena.ofShared();

    /** Action that all ranks execute at the same time. */
    interface Step {
        void of(int rank) throws Exception;
    }

    private static void together(Step step) throws Exception {
        List<Future<?>> all = new ArrayList<>();
        try (ExecutorService threads = Executors.newFixedThreadPool(RANKS)) {
            for (int i = 0; i < RANKS; i++) {
                int rank = i;
                all.add(threads.submit(() -> {
                    step.of(rank);
                    return null;
                }));
            }
            for (Future<?> each : all) {
                each.get(60, TimeUnit.SECONDS);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"shm, 4", "socket, 4", "shm, 2", "socket, 2", "auto, 2", "shm, 1", "ucx, 4", "ucx, 2"})
    void allArrives(String network, int hosts, @TempDir Path elsewhere) throws Exception {
        Ucx.assumeUsable(network);
        CapturedLog.begin();
        for (int rank = 0; rank < RANKS; rank++) {
            networks[rank] =
                    NetworkOptions.NetworkChoice.parse(network).open(SocketOptions.defaults(), ShmOptions.defaults());
            listeners[rank] = networks[rank].listen();
            hardware[rank] = new HostGinDevice("gin-host", hosts < RANKS);
            memory[rank] = arena.allocate(WINDOW, 64);
            fill(rank);
        }
        byte[][] addresses = new byte[RANKS][];
        for (int rank = 0; rank < RANKS; rank++) {
            addresses[rank] = listeners[rank].address();
        }
        try {
            together(rank -> {
                FullMesh data = FullMesh.connect(networks[rank], listeners[rank], addresses, rank, 1, 0,
                        Duration.ofSeconds(30), () -> null);
                FullMesh control = FullMesh.connect(networks[rank], listeners[rank], addresses, rank, 2, 0,
                        Duration.ofSeconds(30), () -> null);
                Path directory = hosts == 2 && rank >= 2 ? elsewhere : ShmOptions.defaults().directory();
                groups[rank] = new GinGroup(rank, networks[rank], in(directory, hardware[rank]), data, control,
                        GinOptions.defaults(), GinRankPair.losses());
                windows[rank] = groups[rank].register(memory[rank].address(), WINDOW, 1);
                served[rank] = groups[rank].createContexts(FORMAT, CONTEXTS, SIGNALS, 1, QUEUE_SIZE);
            });
            int near = RANKS / hosts - 1;
            assertEquals(RANKS * near,
                    CapturedLog.lines()
                            .stream()
                            .filter(line -> line.contains("are staged in memory shared with it"))
                            .count());
            together(this::putToAll);
            for (int rank = 0; rank < RANKS; rank++) {
                assertEquals(near > 0, groups[rank].communicator().served().reached() > 0,
                        "signals of rank " + rank + " that needed no frame");
                served[rank].close();
            }
        } finally {
            together(rank -> {
                if (groups[rank] != null) {
                    groups[rank].close();
                }
            });
            for (int rank = 0; rank < RANKS; rank++) {
                hardware[rank].close();
                listeners[rank].close();
            }
            Connected.closeAll(networks);
            arena.close();
        }
        assertEquals(List.of(), GinRankPair.files());
        assertEquals(0, elsewhere.toFile().list().length);
    }

    /** Returns the given hardware with another directory for shared memory. */
    private static GinDevice in(Path directory, HostGinDevice hardware) {
        return (GinDevice) Proxy.newProxyInstance(GinDevice.class.getClassLoader(), new Class<?>[] {GinDevice.class},
                (proxy, method, arguments) -> method.getName().equals("sharedDirectory") ? directory
                        : method.invoke(hardware, arguments));
    }

    private void fill(int rank) {
        byte[] bytes = new byte[PLACES];
        new Random(rank).nextBytes(bytes);
        MemorySegment.copy(bytes, 0, memory[rank], ValueLayout.JAVA_BYTE, 0, PLACES);
    }

    /**
     * Returns the puts of one rank to another: size, source offset, and destination offset in the sender's range of the
     * target's window.
     */
    private static int[][] plan(int from, int to) {
        Random random = new Random(31 * from + to);
        int[][] puts = new int[PUTS][];
        int place = 1;
        for (int i = 0; i < PUTS; i++) {
            int size = switch (i % 4) {
                case 0 -> 0;
                case 1 -> 1 + random.nextInt(8);
                default -> i == 30 ? MAX_BYTES : 1 + random.nextInt(64 << 10);
            };
            puts[i] = new int[] {size, random.nextInt(PLACES - MAX_BYTES), place};
            place += size + 1;
        }
        assertTrue(place <= PLACES);
        return puts;
    }

    private void putToAll(int rank) {
        Kernel kernel = new Kernel(rank);
        int[][][] plans = new int[RANKS][][];
        for (int peer = 0; peer < RANKS; peer++) {
            plans[peer] = plan(rank, peer);
        }
        for (int i = 0; i < PUTS; i++) {
            for (int peer = 0; peer < RANKS; peer++) {
                int[] put = plans[peer][i];
                kernel.put(i / 3 % CONTEXTS, peer, put[0], put[1], (1 + rank) * PLACES + put[2]);
            }
        }
        for (int peer = 0; peer < RANKS; peer++) {
            kernel.awaitSignals(peer, PUTS);
            byte[] theirs = new byte[PLACES];
            new Random(peer).nextBytes(theirs);
            for (int[] put : plan(peer, rank)) {
                int at = (1 + peer) * PLACES + put[2];
                String what = put[0] + " bytes from rank " + peer + " to rank " + rank;
                assertEquals(-1, MemorySegment.mismatch(memory[rank], at, at + put[0], MemorySegment.ofArray(theirs),
                        put[1], put[1] + put[0]), what);
                assertEquals(0, memory[rank].get(ValueLayout.JAVA_BYTE, at - 1), what);
                assertEquals(0, memory[rank].get(ValueLayout.JAVA_BYTE, at + put[0]), what);
            }
        }
        if (hardware[rank].sharesMemory()) {
            // The loop sends signals until one needs no frame. This happens once all earlier puts are complete.
            for (int i = 0; i < MAX_SIGNALS && groups[rank].communicator().served().reached() == 0; i++) {
                for (int peer = 0; peer < RANKS; peer++) {
                    kernel.signal(peer);
                }
            }
        }
        kernel.flush();
    }

    /** Posts a rank's descriptors. */
    private final class Kernel {
        private final int rank;
        private final GinQueueMemory[] queues = new GinQueueMemory[CONTEXTS];
        private final GinIndices[] cis = new GinIndices[CONTEXTS];
        private final GinCells[] signals = new GinCells[CONTEXTS];
        private final int[][] posted = new int[CONTEXTS][RANKS];
        private final long[] words = new long[GinDescriptorFormat.MAX_WORDS];

        Kernel(int rank) {
            this.rank = rank;
            MemorySegment all = NativeMemory.at(NetDeviceHandle.of(served[rank].deviceHandle()).handle(),
                    CONTEXTS * FORMAT.contextBytes());
            for (int i = 0; i < CONTEXTS; i++) {
                MemorySegment context = all.asSlice(i * FORMAT.contextBytes(), FORMAT.contextBytes());
                GinGpuContext seen = GinGpuContext.of(context);
                queues[i] = GinQueueMemory.of(
                        NativeMemory.at(seen.queues(), GinQueueMemory.bytes(FORMAT, RANKS, QUEUE_SIZE)), FORMAT, RANKS,
                        QUEUE_SIZE);
                cis[i] = GinIndices.of(NativeMemory.at(seen.cis(), RANKS * (long) Integer.BYTES), RANKS);
                signals[i] = GinCells.of(NativeMemory.at(ncclGinProxyGpuCtx_v2_t.signals(context).address(),
                        SIGNALS * (long) Long.BYTES));
            }
        }

        void put(int context, int peer, int bytes, int from, int to) {
            boolean value = bytes > 0 && bytes <= Long.BYTES;
            FORMAT.begin(words, GinOp.PUT | GinOp.SIGNAL_INC | (value ? GinOp.INLINE : 0), bytes);
            if (value) {
                long inlined = 0;
                for (int i = 0; i < bytes; i++) {
                    inlined |= (memory[rank].get(ValueLayout.JAVA_BYTE, from + i) & 0xffL) << 8 * i;
                }
                FORMAT.inline(words, inlined);
            } else {
                FORMAT.source(words, windows[rank].handle(), from);
            }
            FORMAT.target(words, windows[rank].handle(), to);
            FORMAT.completion(words, 0, rank, 1);
            post(context, peer);
        }

        void signal(int peer) {
            FORMAT.begin(words, GinOp.PUT | GinOp.SIGNAL_INC, 0);
            FORMAT.completion(words, 0, RANKS, 1);
            post(0, peer);
        }

        private void post(int context, int peer) {
            while (posted[context][peer] - cis[context].acquire(peer) == QUEUE_SIZE) {
                pause();
            }
            VarHandle.releaseFence(); // pairs with the agent's acquire loads: the source's data is visible
            queues[context].storeOpaque(queues[context].at(peer, posted[context][peer]++), words);
        }

        void awaitSignals(int from, long count) {
            while (signals[0].acquire(from) + signals[1].acquire(from) != count) {
                pause();
            }
        }

        void flush() {
            for (int context = 0; context < CONTEXTS; context++) {
                for (int peer = 0; peer < RANKS; peer++) {
                    while (posted[context][peer] != cis[context].acquire(peer)) {
                        pause();
                    }
                }
            }
        }

        private void pause() {
            groups[rank].communicator().throwIfFailed();
            Thread.yield();
        }
    }
}
