package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Communicator;
import org.millrace.DeviceStream;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.net.ucx.Ucx;

/**
 * Random programs: all operations, nested groups, several streams and communicators. A reference implementation without
 * groups and streams checks the results.
 */
@Tag("slow")
@Tag("optimized")
class RandomProgramTest extends EngineFixture {

    private static final int STREAMS = 3;
    private static final int BATCHES = 20;
    private static final int CALLS = 20;
    private static final List<ReduceOp> REDUCTIONS =
            List.of(ReduceOp.SUM, ReduceOp.PROD, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.AVG, new ReduceOp.PreMulSum(-2));

    /** A program that is the same on every rank, because each rank creates it from the same seed. */
    private static final class Program {
        private final Random random;
        private final Communicator[] communicators;
        private final List<List<DeviceStream>> streams;
        private final List<Call.Running> running = new ArrayList<>();
        /**
         * Chooses the calls whose memory this rank registers. The choice differs between the ranks. Null if this rank
         * registers no memory.
         */
        private final Random registers;

        Program(long seed, Communicator[] communicators, List<List<DeviceStream>> streams, boolean registers) {
            this.registers = registers ? new Random(seed * 31 + communicators[0].rank()) : null;
            this.random = new Random(seed);
            this.communicators = communicators;
            this.streams = streams;
        }

        private int size() {
            return switch (random.nextInt(4)) {
                case 0 -> random.nextInt(4);
                case 1 -> random.nextInt(200);
                case 2 -> random.nextInt(3000);
                default -> random.nextInt(10) == 0 ? random.nextInt(60_000) : random.nextInt(600);
            };
        }

        private void call(int communicator, Arena arena) {
            Communicator on = communicators[communicator];
            Operation operation = Operation.values()[random.nextInt(Operation.values().length)];
            Call call = new Call(operation, size(), REDUCTIONS.get(random.nextInt(REDUCTIONS.size())),
                    random.nextInt(on.size()), random.nextBoolean(), random.nextLong());
            running.add(call.new Running(on, streams.get(communicator).get(random.nextInt(STREAMS)), arena,
                    registers != null && registers.nextInt(3) > 0));
        }

        private void calls(int communicator, int number, int depth, Arena arena) {
            for (int i = 0; i < number; i++) {
                if (depth < 3 && random.nextInt(5) == 0) {
                    communicators[communicator]
                            .group(() -> calls(communicator, 1 + random.nextInt(4), depth + 1, arena));
                } else {
                    call(communicator, arena);
                }
            }
        }

        int run() {
            int checked = 0;
            for (int batch = 0; batch < BATCHES; batch++) {
                try (Arena arena = Arena.ofShared()) {
                    for (int i = 0; i < CALLS / 4; i++) {
                        calls(random.nextInt(communicators.length), 4, 0, arena);
                    }
                    streams.forEach(ofOne -> ofOne.forEach(stream -> stream.synchronize(TIMEOUT)));
                    running.forEach(call -> assertNull(call.wrong()));
                    running.forEach(Call.Running::release);
                    checked += running.size();
                    running.clear();
                }
            }
            return checked;
        }
    }

    @ParameterizedTest
    @CsvSource({"2, 2, 1, 11, 2147483640, '^nvls'", "3, 1, 2, 12, 4294967290, '^nvls'",
            "4, 2, 1, 13, 9223372036854775800, 'tree'", "5, 1, 1, 14, -20, 'ring'", "8, 1, 1, 15, 0, '^nvls'",
            "1, 2, 1, 16, 0, 'ring'"})
    void everyResultIsRight(int ranks, int communicators, int channels, long seed, long firstStep, String algorithms)
            throws Exception {
        run(ranks, communicators, seed, false,
                EngineGroup.settings("NCCL_MIN_NCHANNELS", "" + channels, "org.millrace.engine.firstStep",
                        "" + firstStep, "NCCL_BUFFSIZE", "32K", "NCCL_ALGO", algorithms,
                        "MILLRACE_REGISTERED_THRESHOLD", "0"));
    }

    @ParameterizedTest
    @CsvSource({
            "2, 21, 'MILLRACE_NET=shm NCCL_NET_SHARED_BUFFERS=1 NCCL_P2P_NET_CHUNKSIZE=2K NCCL_P2P_LL_THRESHOLD=500 org.millrace.engine.firstStep=4294967290'",
            "3, 22, 'MILLRACE_NET=socket NCCL_NET_SHARED_BUFFERS=1 NCCL_MIN_NCHANNELS=2 org.millrace.engine.firstStep=-20'",
            "5, 23, 'MILLRACE_NET=shm NCCL_NET_SHARED_BUFFERS=1 NCCL_P2P_NET_CHUNKSIZE=1K NCCL_MIN_NCHANNELS=3'",
            "2, 25, 'MILLRACE_NET=socket MILLRACE_PTR_THRESHOLD=0 org.millrace.engine.firstStep=2147483640'",
            "5, 26, 'MILLRACE_NET=shm MILLRACE_PTR_THRESHOLD=0 NCCL_ALGO=ring NCCL_MIN_NCHANNELS=2 NCCL_P2P_NET_CHUNKSIZE=1K'",
            "3, 27, 'MILLRACE_NET=socket MILLRACE_PTR_THRESHOLD=1024G MILLRACE_GROUPED_CONNECTIONS=1 NCCL_MIN_NCHANNELS=5 org.millrace.engine.firstStep=4294967290'",
            "3, 28, 'MILLRACE_NET=ucx NCCL_NET_SHARED_BUFFERS=1 NCCL_P2P_NET_CHUNKSIZE=2K NCCL_MIN_NCHANNELS=2'",
            "2, 29, 'MILLRACE_NET=ucx MILLRACE_PTR_THRESHOLD=0 NCCL_P2P_LL_THRESHOLD=500 org.millrace.engine.firstStep=4294967290'",
            "3, 24, 'NCCL_NET_SHARED_BUFFERS=1 NCCL_P2P_LL_THRESHOLD=1K'"})
    void everyResultIsRightInEveryMode(int ranks, long seed, String modes) throws Exception {
        Map<String, String> settings = EngineGroup.settings("NCCL_BUFFSIZE", "32K");
        for (String mode : modes.split(" ")) {
            settings.put(mode.substring(0, mode.indexOf('=')), mode.substring(mode.indexOf('=') + 1));
        }
        Ucx.assumeUsable(settings.getOrDefault("MILLRACE_NET", "auto"));
        run(ranks, 1, seed, true, settings);
    }

    private void run(int ranks, int communicators, long seed, boolean registers, Map<String, String> settings)
            throws Exception {
        AtomicInteger checked = new AtomicInteger();
        List<Throwable> thrown = EngineGroup.call(ranks, rank -> () -> {
            for (int i = 0; i < communicators; i++) {
                Files.createDirectories(directory.resolve("c" + i));
            }
            Communicator[] all = new Communicator[communicators];
            List<List<DeviceStream>> streams = new ArrayList<>();
            try {
                for (int i = 0; i < communicators; i++) {
                    all[i] = EngineGroup.join(directory.resolve("c" + i), rank, ranks, settings);
                    Communicator one = all[i];
                    streams.add(
                            java.util.stream.Stream.generate(() -> one.device().newStream()).limit(STREAMS).toList());
                }
                checked.addAndGet(new Program(seed, all, streams, registers).run());
                streams.forEach(ofOne -> ofOne.forEach(DeviceStream::close));
            } catch (Throwable failure) {
                for (Communicator one : all) {
                    if (one != null) {
                        one.abort();
                    }
                }
                throw failure;
            } finally {
                for (Communicator one : all) {
                    if (one != null) {
                        one.close();
                    }
                }
            }
            return null;
        });
        thrown.forEach(failure -> assertNull(failure, () -> "seed " + seed + ": " + failure));
        assertTrue(checked.get() >= ranks * BATCHES * CALLS, "only " + checked + " calls were checked");
    }
}
