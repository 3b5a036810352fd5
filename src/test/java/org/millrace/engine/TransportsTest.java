package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.example.millrace.unix.UnixSocketTransport;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.ReduceOp;

/** All-reduce over each transport. The test checks the reported reason for the choice of the transport. */
@Tag("slow")
class TransportsTest extends EngineFixture {

    private static final int COUNT = 70_001;

    @AfterEach
    void off() {
        System.clearProperty(UnixSocketTransport.ENABLE);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"2 |  | P2P (UNIX: example.unix.enable is not set)", "3 | NCCL_P2P_USE_CUDA_MEMCPY=1 | P2P (UNIX",
                    "5 |  | P2P (UNIX",
                    "2 | NCCL_P2P_DISABLE=1 | SHM (UNIX: example.unix.enable is not set; P2P: NCCL_P2P_DISABLE=1)",
                    "3 | NCCL_P2P_DISABLE=1 NCCL_SHM_LOCALITY=1 | SHM (UNIX",
                    "2 | NCCL_P2P_DISABLE=1 NCCL_SHM_USE_CUDA_MEMCPY=1 | SHM (UNIX",
                    "3 | NCCL_P2P_DISABLE=1 NCCL_SHM_USE_CUDA_MEMCPY=1 NCCL_SHM_MEMCPY_MODE=2 | SHM (UNIX",
                    "5 | NCCL_P2P_DISABLE=1 NCCL_SHM_USE_CUDA_MEMCPY=1 NCCL_SHM_MEMCPY_MODE=3 NCCL_SHM_LOCALITY=1 | SHM (UNIX",
                    "2 | NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 | NET (UNIX: example.unix.enable is not set; P2P: NCCL_P2P_DISABLE=1; SHM: NCCL_SHM_DISABLE=1)",
                    "3 | MILLRACE_NET=shm | NET (UNIX: example.unix.enable is not set; P2P: MILLRACE_NET=shm; SHM: MILLRACE_NET=shm)",
                    "2 | MILLRACE_FAULT=delay:frame=2,polls=3 | NET (UNIX: example.unix.enable is not set; P2P: MILLRACE_FAULT is planted in a network",})
    void everyRankGetsTheSum(int ranks, String settings, String chosen) throws Exception {
        run(ranks, settings, chosen);
    }

    @ParameterizedTest
    @CsvSource({"2", "3"})
    void aTransportOfAnotherJarCarriesIt(int ranks) throws Exception {
        System.setProperty(UnixSocketTransport.ENABLE, "true");
        run(ranks, null, "UNIX");
    }

    @Test
    void aTransportOfAnotherJarIsSwitchedOff() throws Exception {
        System.setProperty(UnixSocketTransport.ENABLE, "true");
        run(2, "NCCL_MY_TRANSPORT_ENABLE=0", "P2P");
    }

    private void run(int ranks, String settings, String chosen) throws Exception {
        List<String> pairs = new ArrayList<>(List.of("NCCL_BUFFSIZE", "64K", "org.millrace.engine.firstStep",
                "4294967292", "NCCL_MIN_NCHANNELS", "2"));
        if (settings != null) {
            Arrays.stream(settings.split(" ")).forEach(setting -> pairs.addAll(List.of(setting.split("=", 2))));
        }
        try (ChosenTransports log = ChosenTransports.listen()) {
            Map<String, String> map = EngineGroup.settings(pairs.toArray(String[]::new));
            EngineGroup.ranks(directory, ranks, map, TransportsTest::reduceAndCheck);
            assertEquals(4 * ranks, log.lines().size(), log.lines().toString());
            assertTrue(log.lines().stream().allMatch(line -> line.contains(": " + chosen)), log.lines().toString());
        }
    }

    private static void reduceAndCheck(Communicator communicator) {
        try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
            MemorySegment data = communicator.device().allocate(8L * COUNT, arena);
            for (int i = 0; i < COUNT; i++) {
                data.setAtIndex(ValueLayout.JAVA_LONG, i, i + communicator.rank());
            }
            int n = communicator.size();
            for (int round = 0; round < 3; round++) {
                communicator.allReduce(data, data, COUNT, DataType.INT64, ReduceOp.SUM, stream);
            }
            stream.synchronize(TIMEOUT);
            for (int i = 0; i < COUNT; i++) {
                long once = (long) n * i + n * (n - 1) / 2;
                assertEquals(once * n * n, data.getAtIndex(ValueLayout.JAVA_LONG, i),
                        "element " + i + " on rank " + communicator.rank());
            }
        }
    }

    /**
     * These transports send no frames, so no receiver compares headers. The rank that announces its operation later
     * compares the operation with the record of the other rank.
     */
    @ParameterizedTest
    @CsvSource({"NCCL_P2P_DISABLE, 0", "NCCL_P2P_USE_CUDA_MEMCPY, 1", "NCCL_P2P_DISABLE, 1",
            "NCCL_SHM_USE_CUDA_MEMCPY, 1"})
    void ranksThatDisagreeAreBothTold(String setting, String value) throws Exception {
        Map<String, String> settings = EngineGroup.settings(setting, value, "NCCL_SHM_MEMCPY_MODE", "3");
        List<Throwable> thrown = EngineGroup.thrown(directory, 2, settings, (communicator, stream, arena) -> {
            MemorySegment data = communicator.device().allocate(800, arena);
            communicator.allReduce(data, data, 100, DataType.INT64,
                    communicator.rank() == 0 ? ReduceOp.SUM : ReduceOp.MAX, stream);
            stream.synchronize(TIMEOUT);
        });
        for (Throwable failure : thrown) {
            assertTrue(failure != null && failure.getMessage().contains("the ranks disagree")
                    && failure.getMessage().contains("int64, max"), String.valueOf(failure));
        }
    }

    @Test
    void oneRankThatRefusesIsEnough() throws Exception {
        try (ChosenTransports log = ChosenTransports.listen()) {
            List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
                String one = rank == 1 ? "1" : "0";
                try (Communicator communicator =
                        EngineGroup.join(directory, rank, 2, EngineGroup.settings("NCCL_P2P_DISABLE", one))) {
                    reduceAndCheck(communicator);
                }
                return null;
            });
            thrown.forEach(failure -> assertNull(failure));
            assertTrue(log.lines()
                    .stream()
                    .anyMatch(line -> line
                            .contains("rank 0 -> rank 1, channel 0: SHM (UNIX: example.unix.enable is not set; "
                                    + "P2P: rank 1: NCCL_P2P_DISABLE=1)")),
                    log.lines().toString());
        }
    }
}
