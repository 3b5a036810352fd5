package org.millrace.plugin;

import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.function.BooleanSupplier;
import org.millrace.MillraceException;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.plugin.Upcalls.Function;
import org.millrace.plugin.Upcalls.Gin;
import org.millrace.plugin.Upcalls.Rma;
import org.millrace.plugin.gin.GinKernel;
import org.millrace.plugin.host.NativeMemory;

/**
 * GIN's part of a {@link TrainingRun}. Two ranks of this process post descriptors as kernels do, and RMA operations as
 * programs do. Each rank has its own thread, because each rank's calls wait for the other rank.
 */
final class GinTraining {

    private static final int RANKS = 2;
    private static final int PUTS = 4_000;
    private static final int RMA_PUTS = 1_000;
    private static final long WINDOW_BYTES = GinKernel.WINDOW_BYTES;
    private static final int MAX_BYTES = 16 * 1024;
    private static final int SIGNALS = GinKernel.SIGNALS;
    private static final int TABLE_VERSION = 11;
    private static final long HANDLE_BYTES = 128;

    /** Time limit of each wait. The limit is long, because the machine may be busy. */
    private static final Duration DEADLINE = Duration.ofSeconds(60);

    private static final Arena ARENA = Arena.global();

    private final PluginTables tables;
    private final long peers = ARENA.allocate(RANKS * Long.BYTES, Long.BYTES).address();
    private final CyclicBarrier barrier = new CyclicBarrier(RANKS);

    GinTraining(PluginTables tables) {
        this.tables = tables;
    }

    void run() {
        List<CompletableFuture<Void>> ranks = new ArrayList<>();
        for (int i = 0; i < RANKS; i++) {
            ranks.add(CompletableFuture.runAsync(new Rank(i)::run, Thread.ofPlatform().daemon()::start));
        }
        ranks.forEach(rank -> await(rank::isDone));
        ranks.forEach(CompletableFuture::join);
    }

    /**
     * Waits for a condition. Throws after {@link #DEADLINE}.
     */
    static void await(BooleanSupplier done) {
        long end = System.nanoTime() + DEADLINE.toNanos();
        while (!done.getAsBoolean()) {
            Thread.yield(); // This process may have only one core, and the awaited thread needs that core.
            if (System.nanoTime() - end > 0) {
                throw new MillraceException("the training run waited too long");
            }
        }
    }

    private final class Rank {

        private final int number;
        private final long result = ARENA.allocate(Long.BYTES, Long.BYTES).address();
        private final Random random = new Random(1);

        Rank(int number) {
            this.number = number;
        }

        /** Calls a function whose last argument is the address of its result. Returns the result. */
        private long made(Function function, long... arguments) {
            long[] all = java.util.Arrays.copyOf(arguments, arguments.length + 1);
            all[arguments.length] = result;
            tables.callAsShim(function, all);
            return NativeMemory.getLong(result);
        }

        private void meet() {
            try {
                barrier.await();
            } catch (Exception e) {
                throw new MillraceException("the other rank is gone", e);
            }
        }

        void run() {
            tables.callAsShim(Gin.GIN_INIT, result, 1, 0, 0);
            long context = NativeMemory.getLong(result);
            made(Gin.GIN_DEVICES);
            made(Gin.GIN_GET_PROPERTIES, TABLE_VERSION, 0, ARENA.allocate(1024, Long.BYTES).address());
            long handle = ARENA.allocate(HANDLE_BYTES, Long.BYTES).address();
            long listener = made(Gin.GIN_LISTEN, context, 0, handle);
            NativeMemory.putLong(peers + (long) number * Long.BYTES, handle);
            meet();
            long group = made(Gin.GIN_CONNECT, context, peers, RANKS, number, 0, listener);
            long served = ARENA.allocate(Long.BYTES, Long.BYTES).address();
            long device = made(Gin.GIN_CREATE_CONTEXT, TABLE_VERSION, group, SIGNALS, SIGNALS, 1, 0, 0, served);
            long rma = made(Rma.RMA_CREATE_CONTEXT, group, 1);
            tables.callAsShim(Gin.GIN_CLOSE_LISTEN, listener);
            long window = ARENA.allocate(Long.BYTES, Long.BYTES).address();
            long memory = register(group, window);
            putAsKernel(device, NativeMemory.getLong(window));
            putAsProgram(group, rma, memory);
            meet();
            tables.callAsShim(Gin.GIN_DESTROY_CONTEXT, NativeMemory.getLong(served));
            tables.callAsShim(Gin.GIN_DESTROY_CONTEXT, rma);
            tables.callAsShim(Gin.GIN_DEREG_MR_SYM, group, memory);
            tables.callAsShim(Gin.GIN_CLOSE_COLL, group);
            tables.callAsShim(Gin.GIN_FINALIZE, context);
        }

        private long register(long group, long window) {
            long bytes = ARENA.allocate(WINDOW_BYTES, HANDLE_BYTES).address();
            long memory = ARENA.allocate(Long.BYTES, Long.BYTES).address();
            tables.callAsShim(Gin.GIN_REG_MR_SYM, group, bytes, WINDOW_BYTES, plugin_h.NCCL_PTR_HOST(), 0, memory,
                    window);
            return NativeMemory.getLong(memory);
        }

        private void putAsKernel(long device, long window) {
            GinKernel kernel = new GinKernel(GinDescriptorFormat.V28, device, number, window, PUTS);
            await(() -> !kernel.turn());
        }

        private void putAsProgram(long group, long rma, long memory) {
            for (int i = 0; i < RMA_PUTS; i++) {
                int bytes = 1 + random.nextInt(MAX_BYTES);
                long request =
                        i % 2 == 0 ? made(Rma.RMA_PUT, rma, 0, 0, memory, bytes, WINDOW_BYTES / 2, memory, 1 - number)
                                : made(Rma.RMA_PUT_SIGNAL, rma, 0, 0, memory, bytes, WINDOW_BYTES / 2, memory,
                                        1 - number, WINDOW_BYTES - Long.BYTES, memory, 1, 0);
                if (request != 0) {
                    await(() -> (int) made(Rma.RMA_TEST, group, request) != 0);
                }
            }
        }
    }
}
