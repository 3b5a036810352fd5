package org.millrace.plugin.gin;

import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.gin.GinContext;
import org.millrace.gin.GinServed;
import org.millrace.gin.Window;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.connection.FullMesh;
import org.millrace.plugin.host.NcclLog;
import org.millrace.plugin.path.NetEndpoint;

/**
 * Executes descriptors of every kind between two groups of this process, over the process's own network, while NCCL
 * still initializes GIN. When the first kernel posts, the code that serves descriptors is therefore already compiled.
 * The first half of the warm-up passes bytes and signals through shared memory, as between ranks of one host. The
 * second half sends them over the network. The warm-up's own threads yield to other threads. The warm-up ends with the
 * first descriptor of a program's kernel, or after a time limit. Bytes lie in host memory. Copies by the GPU's engines
 * are not warmed up.
 */
final class GinWarmUp implements Runnable {

    private static final Duration ENOUGH = Duration.ofMillis(1500);
    private static final int PUTS = 10_000;
    /**
     * Number of puts if this process has few cores. The JVM then uses only the compiler C1, which compiles after fewer
     * executions than C2.
     */
    private static final int PUTS_ON_FEW_CORES = 2_500;
    /** Time between two checks whether a program's kernel has begun, in nanoseconds. */
    private static final long LOOK_NANOS = 200_000;
    private static final int QUEUE_SIZE = 64;
    /** First of the warm-up's connection keys. No handle contains these keys, so no peer can use them. */
    private static final long KEY = 0x7761726d2d7570L;

    /** Maximum time that the creation of the first contexts waits for the end of the warm-up. */
    private static final Duration TIMEOUT = Duration.ofMillis(250);

    private static final AtomicBoolean STARTED = new AtomicBoolean();
    private static volatile @Nullable GinWarmUp current;

    private final GinResources resources;
    private final GinDescriptorFormat format;
    private final boolean shared;
    private final int puts;
    private final Duration enough;
    private final long end;
    private final long servedBefore = GinGroup.Totals.served().descriptors();
    private GinServed served = GinServed.NONE;
    private final CountDownLatch over = new CountDownLatch(1);
    private volatile boolean stopped;

    GinWarmUp(GinResources resources, GinDescriptorFormat format, boolean shared, int puts, Duration enough) {
        this.resources = resources;
        this.format = format;
        this.shared = shared;
        this.puts = puts;
        this.enough = enough;
        end = System.nanoTime() + enough.toNanos();
    }

    /**
     * Begins the warm-up on a new thread, which ends with the warm-up. Only the first call in this process has an
     * effect.
     *
     * @param format   descriptor format of the kernels
     * @param shared   whether ranks of one host share memory
     * @param fewCores whether only C1 compiles
     */
    static void startOnce(GinResources resources, GinDescriptorFormat format, boolean shared, boolean fewCores) {
        if (STARTED.compareAndSet(false, true)) {
            GinWarmUp warmUp = new GinWarmUp(resources, format, shared, fewCores ? PUTS_ON_FEW_CORES : PUTS, ENOUGH);
            current = warmUp;
            Thread.ofPlatform().daemon().name("millrace-gin-warm-up").start(warmUp);
        }
    }

    /**
     * Waits at most {@link #TIMEOUT} for the end of the warm-up, and then stops the warm-up. The program's kernels may
     * post next and need the cores.
     */
    static void finishCurrent() {
        GinWarmUp warmUp = current;
        if (warmUp != null) {
            current = null;
            warmUp.finish();
        }
    }

    void finish() {
        try {
            over.await(TIMEOUT.toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        stopped = true;
    }

    GinServed served() {
        return served;
    }

    private boolean goesOn() {
        return !stopped && end - System.nanoTime() > 0 && GinGroup.Totals.served().descriptors() == servedBefore;
    }

    /**
     * Runs the warm-up. The warm-up counts as a user of the endpoint, so that the endpoint stays open until the warm-up
     * is complete.
     */
    @Override
    public void run() {
        try {
            NetEndpoint endpoint = resources.openEndpoint();
            try {
                // Faults that a test has configured must affect the program's frames, and not the warm-up's frames.
                if (endpoint.faults().isEmpty()) {
                    if (shared) {
                        run(endpoint, true, 0);
                    }
                    run(endpoint, false, 2);
                }
            } finally {
                resources.closeEndpoint();
            }
        } catch (RuntimeException failed) {
            // NCCL's groups will report the same problem.
            NcclLog.trace("no warm-up of GIN: " + NcclLog.describe(failed));
        } finally {
            over.countDown();
        }
    }

    private void run(NetEndpoint endpoint, boolean sharing, long key) {
        HostGinDevice device = new HostGinDevice("gin-warm-up", sharing);
        Arena memory = Arena.ofShared();
        Rank[] ranks = new Rank[2];
        try {
            if (goesOn()) {
                CompletableFuture<Rank> other = began(() -> new Rank(1, endpoint, device, KEY + key));
                CompletableFuture<Rank> one = began(() -> new Rank(0, endpoint, device, KEY + key));
                // Waits for both threads. Each thread ends, because it waits only a limited time for the other rank.
                one.handle((made, failed) -> ranks[0] = made).join();
                other.handle((made, failed) -> ranks[1] = made).join();
                one.join();
                other.join();
                together(ranks, memory);
            }
        } finally {
            for (Rank rank : ranks) {
                if (rank != null) {
                    rank.group.close();
                }
            }
            device.close();
            memory.close();
        }
    }

    private static <T> CompletableFuture<T> began(Supplier<T> step) {
        return CompletableFuture.supplyAsync(step, Thread.ofPlatform().daemon().name("millrace-gin-warm-up")::start);
    }

    /** Emulates the kernels of both ranks. Calls that wait for the other rank run on two threads. */
    private void together(Rank[] ranks, Arena memory) {
        CompletableFuture<GinKernel> other = began(() -> ranks[1].kernel(memory));
        CompletableFuture<GinKernel> one = began(() -> ranks[0].kernel(memory));
        GinKernel[] kernels = {one.join(), other.join()};
        long looked = System.nanoTime();
        while (kernels[0].turn() | kernels[1].turn()) {
            Thread.yield(); // This process may have only one core, and the agents' threads need it.
            long now = System.nanoTime();
            if (now - looked > LOOK_NANOS) { // The time is read after each yield, because a yield may take long.
                looked = now;
                if (!goesOn()) {
                    break;
                }
            }
        }
        for (Rank rank : ranks) {
            rank.served.close();
            served = rank.served.contexts().stream().map(GinContext::served).reduce(served, GinServed::plus);
        }
    }

    /** One of the two ranks, with the objects that it owns, such as connections and contexts. */
    private final class Rank {

        private final int number;
        private final GinGroup group;
        private GinGroup.Served served;

        Rank(int number, NetEndpoint endpoint, GinDevice device, long key) {
            this.number = number;
            Network network = endpoint.network();
            Listener listener = endpoint.listener();
            byte[][] addresses = {listener.address(), listener.address()};
            FullMesh data = FullMesh.connect(network, listener, addresses, number, key, 0, enough, () -> null);
            FullMesh control = FullMesh.connect(network, listener, addresses, number, key + 1, 0, enough, () -> null);
            group = new GinGroup(number, network, device, data, control, resources.options(), null);
        }

        GinKernel kernel(Arena memory) {
            Window window = group.register(memory.allocate(GinKernel.WINDOW_BYTES, 64).address(),
                    GinKernel.WINDOW_BYTES, plugin_h.NCCL_PTR_HOST());
            served = group.createContexts(format, 1, GinKernel.SIGNALS, GinKernel.SIGNALS, QUEUE_SIZE);
            return new GinKernel(format, served.deviceHandle().address(), number, window.handle(), puts);
        }
    }
}
