package org.millrace.bench.frames;

import java.lang.foreign.Arena;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.plugin.PluginNetwork;
import org.millrace.net.plugin.PluginOptions;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketOptions;

/**
 * Cost of driving a network through a plugin's isend, irecv and test. Frames alternately use a network directly, and
 * the same network through Millrace's own plugin. Both ends are on one thread. The benchmark measures processor time
 * instead of elapsed time, so that a busy machine disturbs it less.
 */
public final class PluginOverhead {

    private static final int[] SIZES = {64, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
    private static final int ROUNDS = 21;
    private static final int WARM_UP_ROUNDS = 6;
    private static final long BYTES_PER_ROUND = 64 << 20;
    private static final int MAX_FRAMES = 5_000;

    private PluginOverhead() {}

    /**
     * Prints a table.
     *
     * @param arguments the plugin. It takes the network beneath it from MILLRACE_NET, and MILLRACE_TAKEOVER must be 0
     */
    public static void main(String[] arguments) {
        String name = System.getenv("MILLRACE_NET");
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        System.out.printf(Locale.ROOT, "%-8s %10s %16s %16s %8s%n", name, "bytes", "direct ns/frame", "plugin ns/frame",
                "ratio");
        try (Network direct =
                NetworkOptions.NetworkChoice.parse(name).open(SocketOptions.defaults(), ShmOptions.defaults());
                Network plugin =
                        PluginNetwork.open(Path.of(arguments[0]), SocketOptions.defaults(), PluginOptions.defaults());
                Arena arena = Arena.ofShared();
                FramePipe first = FramePipe.open(direct);
                FramePipe second = FramePipe.open(plugin)) {
            var memory = arena.allocate(4 << 20, 4096);
            MemoryRegion ofDirect = direct.register(memory);
            MemoryRegion ofPlugin = plugin.register(memory);
            for (int size : SIZES) {
                double[] there = new double[ROUNDS];
                double[] over = new double[ROUNDS];
                double[] ratios = new double[ROUNDS];
                for (int round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
                    double a = nanosPerFrame(threads, first, ofDirect, size);
                    double b = nanosPerFrame(threads, second, ofPlugin, size);
                    if (round >= 0) {
                        there[round] = a;
                        over[round] = b;
                        ratios[round] = b / a;
                    }
                }
                System.out.printf(Locale.ROOT, "%-8s %10d %16.0f %16.0f %8.2f%n", "", size, median(there), median(over),
                        median(ratios));
            }
        }
    }

    private static double nanosPerFrame(ThreadMXBean threads, FramePipe pipe, MemoryRegion memory, int size) {
        int frames = (int) Math.min(MAX_FRAMES, BYTES_PER_ROUND / size);
        long before = threads.getCurrentThreadCpuTime();
        FrameHeader header = new FrameHeader();
        header.payloadBytes(size);
        long first = pipe.receiver().framesCompleted();
        int offered = 0;
        while (pipe.receiver().framesCompleted() - first < frames) {
            while (offered < frames && pipe.sender().offer(header, memory, 0)) {
                offered++;
            }
            pipe.sender().progress();
            pipe.receiver().progress();
            while (pipe.receiver().poll() != null) {
                pipe.receiver().accept(memory, 2 << 20);
            }
        }
        return (double) (threads.getCurrentThreadCpuTime() - before) / frames;
    }

    private static double median(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }
}
