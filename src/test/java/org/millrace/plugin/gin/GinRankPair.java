package org.millrace.plugin.gin;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
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
import org.millrace.plugin.loss.CommunicatorLosses;
import org.millrace.plugin.loss.LossPolicy;
import org.millrace.plugin.loss.LossWatch;

/** Two ranks of one process, each with its own hardware. */
final class GinRankPair implements AutoCloseable {

    static final int BYTES = 24 << 20;

    final Network[] networks = new Network[2];
    final Listener[] listeners = new Listener[2];
    final GinDevice[] hardware = new GinDevice[2];
    final GinGroup[] groups = new GinGroup[2];
    final Window[] windows = new Window[2];
    final MemorySegment[] memory = new MemorySegment[2];
    final Arena arena = Arena.ofShared();

    GinRankPair(String network, boolean... shared) throws Exception {
        Ucx.assumeUsable(network);
        for (int rank = 0; rank < 2; rank++) {
            networks[rank] =
                    NetworkOptions.NetworkChoice.parse(network).open(SocketOptions.defaults(), ShmOptions.defaults());
            listeners[rank] = networks[rank].listen();
            hardware[rank] = new HostGinDevice("gin-host", shared[rank]);
            memory[rank] = arena.allocate(BYTES, 64);
        }
        byte[][] addresses = {listeners[0].address(), listeners[1].address()};
        together(rank -> {
            FullMesh data = FullMesh.connect(networks[rank], listeners[rank], addresses, rank, 1, 0,
                    Duration.ofSeconds(30), () -> null);
            FullMesh control = FullMesh.connect(networks[rank], listeners[rank], addresses, rank, 2, 0,
                    Duration.ofSeconds(30), () -> null);
            groups[rank] =
                    new GinGroup(rank, networks[rank], hardware[rank], data, control, GinOptions.defaults(), losses());
            windows[rank] = groups[rank].register(memory[rank].address(), BYTES, 1);
        });
    }

    /** Returns a communicator's record of lost peers. The loss of a peer does not end the process. */
    static CommunicatorLosses losses() {
        LossWatch watch = new LossWatch();
        watch.use(new LossPolicy(false, Duration.ZERO, true));
        return watch.communicator(1);
    }

    /** Action that each of the two ranks executes. */
    interface Step {
        void of(int rank) throws Exception;
    }

    /** Runs a step for both ranks, each on its own thread. */
    static void together(Step step) throws Exception {
        List<Future<?>> both = new ArrayList<>();
        try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
            for (int i = 0; i < 2; i++) {
                int rank = i;
                both.add(threads.submit(() -> {
                    step.of(rank);
                    return null;
                }));
            }
            for (Future<?> each : both) {
                each.get(60, TimeUnit.SECONDS);
            }
        }
    }

    /** Returns the names of this process's memory files in the shared directory. */
    static List<String> files() throws IOException {
        try (var all = Files.list(Path.of("/dev/shm"))) {
            return all.map(file -> file.getFileName().toString())
                    .filter(name -> name.contains("-" + ProcessHandle.current().pid() + "-") && name.endsWith(".mem"))
                    .toList();
        }
    }

    @Override
    public void close() {
        for (int rank = 0; rank < 2; rank++) {
            groups[rank].close();
            hardware[rank].close();
            listeners[rank].close();
        }
        Connected.closeAll(networks);
        arena.close();
    }
}
