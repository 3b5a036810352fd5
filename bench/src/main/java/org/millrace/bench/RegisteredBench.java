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
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.ReduceOp;
import org.millrace.Registration;

/**
 * Registered operands, which peers read in place, compared with others, which use slots. Runs two ranks over P2P and
 * over SHM, alternately with both kinds. Over SHM, ranks map each other's heap, as processes do.
 *
 * <pre>
 *   java --enable-native-access=ALL-UNNAMED -cp bench/target/millrace-bench.jar org.millrace.bench.RegisteredBench
 * </pre>
 */
public final class RegisteredBench {

    private static final int RANKS = 2;
    private static final int ROUNDS = 25;
    private static final int LARGEST = 16 << 20;
    private static final Duration TIMEOUT = Duration.ofMinutes(1);

    private RegisteredBench() {}

    private interface Operation {
        void enqueue(Communicator communicator, MemorySegment send, MemorySegment receive, long bytes,
                DeviceStream stream);
    }

    /** @param args none */
    public static void main(String[] args) throws Exception {
        System.out.println("| transport | operation | bytes | slots us | registered us | ratio |");
        System.out.println("| --- | --- | --- | --- | --- | --- |");
        for (String disabled : List.of("0", "1")) {
            Path file = Files.createTempDirectory("registered").resolve("group");
            List<Thread> ranks = new ArrayList<>();
            for (int rank = 0; rank < RANKS; rank++) {
                int self = rank;
                ranks.add(Thread.ofPlatform().start(() -> run("file:" + file, self, disabled)));
            }
            for (Thread each : ranks) {
                each.join();
            }
        }
    }

    private static void run(String rendezvous, int rank, String p2pDisabled) {
        Map<String, String> settings = Map.of("MILLRACE_DEVICE", "host", "NCCL_P2P_DISABLE", p2pDisabled,
                "MILLRACE_REGISTERED_THRESHOLD", "0");
        try (Arena arena = Arena.ofShared();
                Communicator communicator = Millrace.join(rendezvous, rank, RANKS, settings);
                DeviceStream stream = communicator.device().newStream()) {
            MemorySegment[] own = operands(communicator, arena);
            MemorySegment[] registered = operands(communicator, arena);
            Registration send = communicator.register(registered[0]);
            Registration receive = communicator.register(registered[1]);
            String transport = p2pDisabled.equals("0") ? "P2P" : "SHM";
            measure(transport + " | all-reduce", communicator, own, registered, stream, (to, from, into, bytes,
                    on) -> to.allReduce(from, into, bytes / 4, DataType.FLOAT32, ReduceOp.SUM, on));
            measure(transport + " | reduce-scatter", communicator, own, registered, stream, (to, from, into, bytes,
                    on) -> to.reduceScatter(from, into, bytes / 4 / RANKS, DataType.FLOAT32, ReduceOp.SUM, on));
            measure(transport + " | broadcast", communicator, own, registered, stream,
                    (to, from, into, bytes, on) -> to.broadcast(from, into, bytes, DataType.INT8, 0, on));
            send.close();
            receive.close();
        }
    }

    private static MemorySegment[] operands(Communicator communicator, Arena arena) {
        return new MemorySegment[] {communicator.device().allocate(LARGEST, arena).fill((byte) 0),
                communicator.device().allocate(LARGEST, arena).fill((byte) 0)};
    }

    private static void measure(String what, Communicator communicator, MemorySegment[] own, MemorySegment[] registered,
            DeviceStream stream, Operation operation) {
        for (long bytes : new long[] {16 << 10, 64 << 10, 128 << 10, 256 << 10, 2 << 20, LARGEST}) {
            int times = Math.clamp(LARGEST / bytes, 4, 200);
            double[] slots = new double[ROUNDS];
            double[] inPlace = new double[ROUNDS];
            double[] ratio = new double[ROUNDS];
            for (int round = -ROUNDS; round < ROUNDS; round++) { // rounds below 0 warm up the JIT compiler
                double one = micros(communicator, own, bytes, times, stream, operation);
                double other = micros(communicator, registered, bytes, times, stream, operation);
                if (round >= 0) {
                    slots[round] = one;
                    inPlace[round] = other;
                    ratio[round] = other / one;
                }
            }
            String mode = communicator.route().orElseThrow().mode();
            if (!mode.equals("PTR")) {
                throw new IllegalStateException("registered memory went in mode " + mode);
            }
            if (communicator.rank() == 0) {
                System.out.printf(Locale.ROOT, "| %s | %d | %.1f | %.1f | %.2f |%n", what, bytes, median(slots),
                        median(inPlace), median(ratio));
            }
        }
    }

    private static double micros(Communicator communicator, MemorySegment[] operands, long bytes, int times,
            DeviceStream stream, Operation operation) {
        long begin = System.nanoTime();
        for (int i = 0; i < times; i++) {
            operation.enqueue(communicator, operands[0], operands[1], bytes, stream);
        }
        stream.synchronize(TIMEOUT);
        return (System.nanoTime() - begin) / 1e3 / times;
    }

    private static double median(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }
}
