package org.millrace.device.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleProfile;
import org.millrace.gin.GinAgent;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.GinOptions;
import org.millrace.gin.HostWindowMemory;
import org.millrace.gin.Window;
import org.millrace.net.Connected;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.connection.FullMesh;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketOptions;
import org.millrace.net.ucx.Ucx;

/**
 * The ranks of a group in one process, each with its own network. One or two threads execute the descriptors of all
 * ranks.
 */
final class GinRanks implements AutoCloseable {

    static final long TIMEOUT_SECONDS = 60;

    final int ranks;
    final Arena arena = Arena.ofShared();
    final Network[] networks;
    final Listener[] listeners;
    final GinAgent[] agents;
    private final AgentRunner[] runners;
    private final List<GinCommunicator[]> communicators = new ArrayList<>();
    private final List<GinDeviceCommunicator> devices = new ArrayList<>();

    /** Program of one rank. */
    interface Body {
        void run(int rank) throws Exception;
    }

    GinRanks(String network, int ranks) {
        Ucx.assumeUsable(network);
        this.ranks = ranks;
        networks = new Network[ranks];
        listeners = new Listener[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            networks[rank] =
                    NetworkOptions.NetworkChoice.parse(network).open(SocketOptions.defaults(), ShmOptions.defaults());
            listeners[rank] = networks[rank].listen();
        }
        agents = new GinAgent[] {new GinAgent("gin-even"), new GinAgent("gin-odd")};
        runners = new AgentRunner[agents.length];
        for (int i = 0; i < agents.length; i++) {
            runners[i] = AgentRunner.start(agents[i], new IdleProfile.Backoff(10, 200, 10_000, 50_000));
        }
    }

    /** Connects all ranks to a new communicator. The agents serve it from now on. */
    GinCommunicator[] connect(GinOptions options) throws Exception {
        byte[][] addresses = Arrays.stream(listeners).map(Listener::address).toArray(byte[][]::new);
        GinCommunicator[] made = new GinCommunicator[ranks];
        int key = communicators.size();
        run(rank -> {
            FullMesh mesh = FullMesh.connect(networks[rank], listeners[rank], addresses, rank, key, 0,
                    Duration.ofSeconds(20), () -> null);
            made[rank] = new GinCommunicator(0, rank, mesh.senders(), mesh.receivers(), options, failure -> {});
            agents[rank % agents.length].add(made[rank]);
        });
        communicators.add(made);
        return made;
    }

    /** Registers a rank's memory as a window. */
    Window window(GinCommunicator communicator, MemorySegment memory) {
        return communicator.register(HostWindowMemory.register(networks[communicator.rank()], memory));
    }

    /** Returns memory of the given size for every rank. */
    MemorySegment[] memory(long bytes) {
        MemorySegment[] all = new MemorySegment[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            all[rank] = arena.allocate(bytes, 64);
        }
        return all;
    }

    Window[] windows(GinCommunicator[] communicator, MemorySegment[] memory) {
        Window[] windows = new Window[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            windows[rank] = window(communicator[rank], memory[rank]);
        }
        return windows;
    }

    GinDeviceCommunicator[] devices(GinCommunicator[] communicator, GinRequirements requirements) {
        GinDeviceCommunicator[] made = new GinDeviceCommunicator[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            made[rank] = new GinDeviceCommunicator(communicator[rank], requirements);
            devices.add(made[rank]);
        }
        return made;
    }

    /** Runs a body on each rank, and throws the first exception. */
    void run(Body body) throws Exception {
        call(ranks, rank -> () -> {
            body.run(rank);
            return null;
        });
    }

    /** Runs callables at the same time, and throws the first exception. */
    static void call(int count, IntFunction<Callable<Void>> body) throws Exception {
        ExecutorService threads =
                Executors.newThreadPerTaskExecutor(Thread.ofPlatform().name("test-block-", 0).daemon().factory());
        try {
            List<Future<Void>> futures = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                futures.add(threads.submit(body.apply(i)));
            }
            for (Future<Void> future : futures) {
                try {
                    future.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
                } catch (ExecutionException e) {
                    if (e.getCause() instanceof Exception cause) {
                        throw cause;
                    }
                    throw new AssertionError(e.getCause().getMessage(), e.getCause());
                }
            }
        } finally {
            threads.shutdownNow();
        }
    }

    @Override
    public void close() {
        devices.forEach(GinDeviceCommunicator::close);
        for (GinCommunicator[] made : communicators) {
            for (GinCommunicator communicator : made) {
                agents[communicator.rank() % agents.length].remove(communicator,
                        communicator.failure() == null ? Duration.ofSeconds(5) : Duration.ZERO);
            }
        }
        for (AgentRunner runner : runners) {
            runner.close();
        }
        Arrays.stream(listeners).forEach(Listener::close);
        Connected.closeAll(networks);
        arena.close();
    }
}
