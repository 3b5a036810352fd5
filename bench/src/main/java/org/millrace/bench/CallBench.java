package org.millrace.bench;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.Map;
import java.util.function.DoubleSupplier;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Event;
import org.millrace.Millrace;
import org.millrace.ReduceOp;
import org.millrace.bench.frames.FramePipe;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;

/**
 * Checks the statements of the documentation about calls and about operations in flight, on the emulated device. It
 * compares operations that are awaited one by one with many enqueued ones. It compares round trips that the host drives
 * with round trips that kernels and proxies drive. It also measures events, and a stream of frames by number in flight
 * and by size.
 *
 * <pre>
 *   java --enable-native-access=ALL-UNNAMED -cp bench/target/millrace-bench.jar org.millrace.bench.CallBench
 * </pre>
 */
public final class CallBench {

    private static final int ROUNDS = 41;
    private static final int BATCH = 256;
    private static final int SMALL = 8;
    private static final Duration TIMEOUT = Duration.ofMinutes(1);

    private CallBench() {}

    /** @param args none */
    public static void main(String[] args) throws Exception {
        System.out.println("| network | what | median (quartiles) |");
        System.out.println("| --- | --- | --- |");
        for (String disabled : List.of("0", "1")) {
            Path file = Files.createTempDirectory("calls").resolve("group");
            List<Thread> ranks = new ArrayList<>();
            for (int rank = 0; rank < 2; rank++) {
                int self = rank;
                ranks.add(Thread.ofPlatform().start(() -> calls("file:" + file, self, disabled)));
            }
            for (Thread each : ranks) {
                each.join();
            }
        }
        System.out.println();
        System.out.println("| network | bytes | 1 | 2 | 4 | 8 | 16 under way, GB/s |");
        System.out.println("| --- | --- | --- | --- | --- | --- | --- |");
        depth(new ShmNetwork(ShmOptions.defaults()));
        depth(new SocketNetwork(SocketOptions.defaults()));
        System.exit(0);
    }

    private static void calls(String rendezvous, int rank, String disabled) {
        Map<String, String> settings = disabled.equals("0") ? Map.of("MILLRACE_DEVICE", "host")
                : Map.of("MILLRACE_DEVICE", "host", "NCCL_P2P_DISABLE", "1", "NCCL_SHM_DISABLE", "1", "MILLRACE_NET",
                        "shm");
        try (Arena arena = Arena.ofShared();
                Communicator communicator = Millrace.join(rendezvous, rank, 2, settings);
                DeviceStream stream = communicator.device().newStream();
                Event event = communicator.device().newEvent()) {
            MemorySegment data = communicator.device().allocate(SMALL, arena).fill((byte) 0);
            Runnable sum = () -> communicator.allReduce(data, data, SMALL, DataType.INT8, ReduceOp.SUM, stream);
            Runnable there = () -> communicator.send(data, SMALL, DataType.INT8, 1 - rank, stream);
            Runnable back = () -> communicator.receive(data, SMALL, DataType.INT8, 1 - rank, stream);
            Runnable first = rank == 0 ? there : back;
            Runnable second = rank == 0 ? back : there;
            Runnable wait = () -> stream.synchronize(TIMEOUT);
            String over = disabled.equals("0") ? "P2P" : "NET shm";
            print(rank, over, "all-reduce of 8 B, enqueued, ns each", () -> nanos(wait, sum));
            print(rank, over, "the same, its call alone, ns", () -> {
                double call = nanos(() -> {}, sum);
                wait.run();
                return call;
            });
            print(rank, over, "the same, each waited for, ns", () -> nanos(() -> {}, sum, wait));
            print(rank, over, "round trip of 8 B, both legs enqueued, ns each", () -> nanos(wait, first, second));
            print(rank, over, "the same, the host waits for each leg, ns",
                    () -> nanos(() -> {}, first, wait, second, wait));
            print(rank, over, "recording an event, ns", () -> nanos(wait, () -> stream.record(event)));
            print(rank, over, "query of an event that is reached, ns", () -> nanos(() -> {}, event::query));
        }
    }

    private static double nanos(Runnable last, Runnable... each) {
        long begin = System.nanoTime();
        for (int i = 0; i < BATCH; i++) {
            for (Runnable one : each) {
                one.run();
            }
        }
        last.run();
        return (System.nanoTime() - begin) / (double) BATCH;
    }

    private static void print(int rank, String network, String what, DoubleSupplier measured) {
        double[] values = new double[ROUNDS];
        for (int round = -2 * ROUNDS; round < ROUNDS; round++) { // rounds below 0 warm up the JIT compiler
            double value = measured.getAsDouble();
            values[Math.max(round, 0)] = value;
        }
        if (rank == 0) {
            Arrays.sort(values);
            System.out.printf(Locale.ROOT, "| %s | %s | %.0f (%.0f to %.0f) |%n", network, what, values[ROUNDS / 2],
                    values[ROUNDS / 4], values[3 * ROUNDS / 4]);
        }
    }

    private static void depth(Network network) throws InterruptedException {
        for (int bytes : new int[] {16 << 10, 128 << 10, 512 << 10}) {
            StringBuilder row = new StringBuilder("| " + network.name() + " | " + bytes);
            for (int most : new int[] {1, 2, 4, 8, 16}) {
                double[] rates = new double[9];
                try (FramePipe pipe = FramePipe.open(network); Arena arena = Arena.ofShared()) {
                    MemoryRegion from = network.register(arena.allocate(bytes, 4096));
                    MemoryRegion to = network.register(arena.allocate(bytes, 4096));
                    long count = (64L << 20) / bytes;
                    for (int round = -2; round < rates.length; round++) {
                        AtomicBoolean sent = new AtomicBoolean();
                        Thread receiver = Thread.ofPlatform().start(() -> receive(pipe, to, count, sent));
                        long begin = System.nanoTime();
                        send(pipe, from, count, bytes, most);
                        sent.set(true);
                        receiver.join();
                        rates[Math.max(round, 0)] = (double) count * bytes / (System.nanoTime() - begin);
                    }
                    from.close();
                    to.close();
                }
                Arrays.sort(rates);
                row.append(String.format(Locale.ROOT, " | %.1f", rates[rates.length / 2]));
            }
            System.out.println(row + " |");
        }
    }

    private static void send(FramePipe pipe, MemoryRegion from, long count, int bytes, int most) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(bytes);
        long before = pipe.sender().framesCompleted();
        for (long offered = 0; pipe.sender().framesCompleted() - before < count;) {
            if (offered < count && offered - (pipe.sender().framesCompleted() - before) < most
                    && pipe.sender().offer(header, from, 0)) {
                offered++;
            } else {
                pipe.sender().progress();
            }
        }
    }

    private static void receive(FramePipe pipe, MemoryRegion to, long count, AtomicBoolean sent) {
        long end = pipe.receiver().framesCompleted() + count;
        while (pipe.receiver().framesCompleted() < end) {
            if (pipe.receiver().poll() != null) {
                pipe.receiver().accept(to, 0);
            } else {
                pipe.receiver().progress();
            }
        }
        while (!sent.get()) {
            pipe.receiver().progress(); // acknowledges the last frames when the sender requests it
        }
    }
}
