package org.millrace.plugin.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.abi.NetDeviceHandle;
import org.millrace.abi.gin.GinCells;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinGpuContext;
import org.millrace.abi.gin.GinOp;
import org.millrace.abi.gin.GinQueueMemory;
import org.millrace.ffi.device.ncclGinProxyGpuCtx_v2_t;
import org.millrace.plugin.host.NativeMemory;

/** Ranks that share memory increment each other's signals in that memory. Other ranks send signals. No file remains. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class GinSignalsTest {

    private static final GinDescriptorFormat FORMAT = GinDescriptorFormat.V30;
    private static final int CONTEXTS = 3;
    private static final int SIGNALS = 5;
    private static final int QUEUE_SIZE = 8;
    private static final int ROUNDS = 40;

    @ParameterizedTest
    @CsvSource({"shm, true, true", "socket, true, true", "shm, true, false", "socket, false, false",
            "ucx, true, false"})
    void signalsGetThere(String network, boolean first, boolean second) throws Exception {
        boolean both = first && second;
        try (GinRankPair ranks = new GinRankPair(network, first, second)) {
            GinGroup.Served[] served = new GinGroup.Served[2];
            GinRankPair.together(
                    rank -> served[rank] = ranks.groups[rank].createContexts(FORMAT, CONTEXTS, SIGNALS, 1, QUEUE_SIZE));
            assertEquals(List.of(), GinRankPair.files(), "both have mapped the memory: its file is gone");
            for (int round = 1; round <= ROUNDS; round++) {
                for (int from = 0; from < 2; from++) {
                    for (int context = 0; context < CONTEXTS; context++) {
                        signal(served[from], context, 1 - from, round, context + 2);
                    }
                }
                for (int to = 0; to < 2; to++) {
                    for (int context = 0; context < CONTEXTS; context++) {
                        await(ranks, served[to], context, (long) round * (context + 2));
                    }
                }
            }
            for (int rank = 0; rank < 2; rank++) {
                long reached = ranks.groups[rank].communicator().served().reached();
                assertEquals(both, reached > 0, reached + " signals of rank " + rank + " needed no frame");
                for (int context = 0; context < CONTEXTS; context++) {
                    for (int other = 0; other < SIGNALS; other++) {
                        assertEquals(other == 1 ? ROUNDS * (context + 2) : 0,
                                signals(gpuContext(served[rank], context)).acquire(other));
                    }
                }
            }
            served[0].close();
            served[1].close();
        }
        assertEquals(List.of(), GinRankPair.files());
    }

    /** Posts a signal as a kernel would. */
    private static void signal(GinGroup.Served served, int context, int peer, int round, long value) {
        GinGpuContext memory = GinGpuContext.of(gpuContext(served, context));
        GinQueueMemory queues = GinQueueMemory.of(
                NativeMemory.at(memory.queues(), GinQueueMemory.bytes(FORMAT, 2, QUEUE_SIZE)), FORMAT, 2, QUEUE_SIZE);
        long[] words = new long[GinDescriptorFormat.MAX_WORDS];
        FORMAT.begin(words, GinOp.PUT | GinOp.SIGNAL_ADD, 0);
        FORMAT.completion(words, 0, 1, value);
        queues.storeOpaque(queues.at(peer, round - 1), words);
    }

    private static void await(GinRankPair ranks, GinGroup.Served served, int context, long expected) {
        GinCells signals = signals(gpuContext(served, context));
        while (signals.acquire(1) != expected) {
            ranks.groups[0].communicator().throwIfFailed();
            ranks.groups[1].communicator().throwIfFailed();
            Thread.onSpinWait();
        }
    }

    private static GinCells signals(MemorySegment context) {
        return GinCells
                .of(NativeMemory.at(ncclGinProxyGpuCtx_v2_t.signals(context).address(), (long) SIGNALS * Long.BYTES));
    }

    private static MemorySegment gpuContext(GinGroup.Served served, int context) {
        MemorySegment all =
                NativeMemory.at(NetDeviceHandle.of(served.deviceHandle()).handle(), CONTEXTS * FORMAT.contextBytes());
        return all.asSlice(context * FORMAT.contextBytes(), FORMAT.contextBytes());
    }
}
