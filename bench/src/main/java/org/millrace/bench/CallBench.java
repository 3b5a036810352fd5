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
import java.util.Map;
import java.util.function.DoubleSupplier;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Event;
import org.millrace.Millrace;
import org.millrace.ReduceOp;

/**
 * Checks the statements of the documentation about calls, on the emulated device. It compares operations that are
 * awaited one by one with many enqueued ones. It compares round trips that the host drives with round trips that
 * kernels and proxies drive. It also measures events.
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
}
