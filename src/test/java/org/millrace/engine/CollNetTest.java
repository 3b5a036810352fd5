package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.Stream;
import org.millrace.net.ucx.Ucx;

/** All-reduces through an aggregator, and those that must go another way beside them. */
class CollNetTest {

    private static final Duration PATIENCE = Duration.ofSeconds(EngineGroup.PATIENCE_SECONDS);

    @TempDir
    Path directory;

    @AfterEach
    void nothingIsLeftBehind() throws Exception {
        assertEquals(List.of(), EngineGroup.threadsAlive(), "threads");
        try (var files = Files.list(directory)) {
            assertEquals(List.of(), files.toList(), "files");
        }
    }

    private static Map<String, String> settings(String... more) {
        Map<String, String> settings = EngineGroup.settings(more);
        settings.put("NCCL_COLLNET_ENABLE", "1");
        settings.put("NCCL_BUFFSIZE", "32K");
        return settings;
    }

    /**
     * Sizes around a slot and around all of them, on both sides of the limit, one after the other without waiting in
     * between.
     */
    @ParameterizedTest
    @CsvSource({"2, auto, 0", "3, auto, 4294967290", "5, auto, 0", "3, socket, 9223372036854775804", "3, ucx, 0"})
    void everyRankGetsTheSum(int ranks, String network, long firstStep) throws Exception {
        Ucx.assumeUsable(network);
        int[] counts = {1, 3, 512, 513, 4096, 4097, 12_500, 12_501, 40_000};
        List<Throwable> thrown = EngineGroup.run(directory, ranks, settings("MILLRACE_COLLNET_MAX_BYTES", "100000",
                "MILLRACE_NET", network, "MILLRACE_FIRST_STEP", "" + firstStep), communicator -> {
                    try (Arena arena = Arena.ofShared(); Stream stream = communicator.device().newStream()) {
                        MemorySegment[] data = new MemorySegment[counts.length];
                        for (int i = 0; i < counts.length; i++) {
                            data[i] = filled(communicator, counts[i], arena);
                            communicator.allReduce(data[i], data[i], counts[i], DataType.INT64,
                                    i % 2 == 0 ? ReduceOp.SUM : ReduceOp.MAX, stream);
                        }
                        stream.synchronize(PATIENCE);
                        for (int i = 0; i < counts.length; i++) {
                            for (int at = 0; at < counts[i]; at++) {
                                long sum = (long) ranks * at + ranks * (ranks - 1) / 2;
                                assertEquals(i % 2 == 0 ? sum : at + ranks - 1,
                                        data[i].getAtIndex(ValueLayout.JAVA_LONG, at),
                                        "element " + at + " of " + counts[i]);
                            }
                        }
                    }
                });
        thrown.forEach(failure -> assertNull(failure));
    }

    private static MemorySegment filled(Communicator communicator, int count, Arena arena) {
        MemorySegment data = communicator.device().allocate(8L * count, arena);
        for (int at = 0; at < count; at++) {
            data.setAtIndex(ValueLayout.JAVA_LONG, at, at + communicator.rank());
        }
        return data;
    }

    /** An average is not for the aggregator; types of other widths are. */
    @Test
    void whatTheNetworkDoesNotSupportGoesAroundTheRing() throws Exception {
        List<Throwable> thrown = EngineGroup.run(directory, 3, settings(), communicator -> {
            try (Arena arena = Arena.ofShared(); Stream stream = communicator.device().newStream()) {
                MemorySegment data = communicator.device().allocate(4 * 1000, arena);
                for (int round = 0; round < 20; round++) {
                    for (int at = 0; at < 1000; at++) {
                        data.setAtIndex(ValueLayout.JAVA_FLOAT, at, communicator.rank() * 3);
                    }
                    communicator.allReduce(data, data, 1000, DataType.FLOAT32, ReduceOp.AVG, stream);
                    communicator.allReduce(data, data, 1000, DataType.FLOAT32, ReduceOp.PROD, stream);
                    stream.synchronize(PATIENCE);
                    assertEquals(27.0f, data.getAtIndex(ValueLayout.JAVA_FLOAT, 999));
                }
                MemorySegment bytes = communicator.device().allocate(9999, arena);
                bytes.fill((byte) (communicator.rank() + 1));
                communicator.allReduce(bytes, bytes, 9999, DataType.INT8, ReduceOp.MIN, stream);
                stream.synchronize(PATIENCE);
                assertEquals(1, bytes.get(ValueLayout.JAVA_BYTE, 9998));
            }
        });
        thrown.forEach(failure -> assertNull(failure));
    }

    @Test
    void ranksThatDisagreeAreAllTold() throws Exception {
        List<Throwable> thrown = EngineGroup.run(directory, 3, settings(), communicator -> {
            try (Arena arena = Arena.ofShared(); Stream stream = communicator.device().newStream()) {
                MemorySegment data = communicator.device().allocate(800, arena);
                communicator.allReduce(data, data, communicator.rank() == 1 ? 99 : 100, DataType.INT64, ReduceOp.SUM,
                        stream);
                stream.synchronize(PATIENCE);
            }
        });
        for (Throwable failure : thrown) {
            assertTrue(failure != null && failure.getMessage().contains("the ranks disagree")
                    && failure.getMessage().contains("gives the aggregator")
                    && failure.getMessage().contains("99 int64, sum"), String.valueOf(failure));
        }
    }

    @Test
    void oneRankWithoutItIsEnoughToLeaveItOff() throws Exception {
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            Map<String, String> settings = settings();
            settings.put("NCCL_COLLNET_ENABLE", "" + rank);
            try (Communicator communicator = EngineGroup.join(directory, rank, 2, settings);
                    Arena arena = Arena.ofShared();
                    Stream stream = communicator.device().newStream()) {
                assertEquals(List.of(),
                        EngineGroup.threadsAlive().stream().filter(name -> name.contains("aggregator")).toList());
                MemorySegment data = filled(communicator, 10, arena);
                communicator.allReduce(data, data, 10, DataType.INT64, ReduceOp.SUM, stream);
                stream.synchronize(PATIENCE);
                assertEquals(19, data.getAtIndex(ValueLayout.JAVA_LONG, 9));
            }
            return null;
        });
        thrown.forEach(failure -> assertNull(failure));
    }
}
