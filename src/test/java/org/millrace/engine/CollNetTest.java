package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.AbortedException;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.PeerLostException;
import org.millrace.ReduceOp;
import org.millrace.net.ucx.Ucx;

/**
 * Operations over a collective network of all ranks, and operations of the same communicator that cannot use this
 * network.
 */
class CollNetTest extends EngineFixture {

    static Map<String, String> settings(String... more) {
        Map<String, String> settings = EngineGroup.settings(more);
        settings.put("NCCL_COLLNET_ENABLE", "1");
        settings.put("NCCL_BUFFSIZE", "32K");
        return settings;
    }

    /**
     * Sizes next to the size of one slot and next to the size of all slots, below and above MILLRACE_COLLNET_MAX_BYTES.
     * The operations follow each other without a wait.
     */
    @ParameterizedTest
    @CsvSource({"2, auto, 0", "3, auto, 4294967290", "5, auto, 0", "3, socket, 9223372036854775804", "3, ucx, 0"})
    void everyRankGetsTheSum(int ranks, String network, long firstStep) throws Exception {
        Ucx.assumeUsable(network);
        int[] counts = {1, 3, 512, 513, 4096, 4097, 12_500, 12_501, 40_000};
        EngineGroup.ranks(directory, ranks, settings("MILLRACE_COLLNET_MAX_BYTES", "100000", "MILLRACE_NET", network,
                "org.millrace.engine.firstStep", "" + firstStep), (communicator, stream, arena) -> {
                    MemorySegment[] data = new MemorySegment[counts.length];
                    for (int i = 0; i < counts.length; i++) {
                        data[i] = filled(communicator, counts[i], arena);
                        communicator.allReduce(data[i], data[i], counts[i], DataType.INT64,
                                i % 2 == 0 ? ReduceOp.SUM : ReduceOp.MAX, stream);
                    }
                    stream.synchronize(TIMEOUT);
                    for (int i = 0; i < counts.length; i++) {
                        for (int at = 0; at < counts[i]; at++) {
                            long sum = (long) ranks * at + ranks * (ranks - 1) / 2;
                            assertEquals(i % 2 == 0 ? sum : at + ranks - 1,
                                    data[i].getAtIndex(ValueLayout.JAVA_LONG, at),
                                    "element " + at + " of " + counts[i]);
                        }
                    }
                });
    }

    static MemorySegment filled(Communicator communicator, int count, Arena arena) {
        MemorySegment data = communicator.device().allocate(8L * count, arena);
        for (int at = 0; at < count; at++) {
            data.setAtIndex(ValueLayout.JAVA_LONG, at, at + communicator.rank());
        }
        return data;
    }

    /**
     * The collective network of this test supports neither averages nor products, so these operations use the ring. A
     * minimum of 8-bit integers uses the network.
     */
    @Test
    void whatTheNetworkDoesNotSupportGoesAroundTheRing() throws Exception {
        EngineGroup.ranks(directory, 3, settings(), (communicator, stream, arena) -> {
            MemorySegment data = communicator.device().allocate(4 * 1000, arena);
            for (int round = 0; round < 20; round++) {
                for (int at = 0; at < 1000; at++) {
                    data.setAtIndex(ValueLayout.JAVA_FLOAT, at, communicator.rank() * 3);
                }
                communicator.allReduce(data, data, 1000, DataType.FLOAT32, ReduceOp.AVG, stream);
                communicator.allReduce(data, data, 1000, DataType.FLOAT32, ReduceOp.PROD, stream);
                stream.synchronize(TIMEOUT);
                assertEquals(27.0f, data.getAtIndex(ValueLayout.JAVA_FLOAT, 999));
            }
            MemorySegment bytes = communicator.device().allocate(9999, arena);
            bytes.fill((byte) (communicator.rank() + 1));
            communicator.allReduce(bytes, bytes, 9999, DataType.INT8, ReduceOp.MIN, stream);
            stream.synchronize(TIMEOUT);
            assertEquals(1, bytes.get(ValueLayout.JAVA_BYTE, 9998));
        });
    }

    @Test
    void ranksThatDisagreeAreAllTold() throws Exception {
        List<Throwable> thrown = EngineGroup.thrown(directory, 3, settings(), (communicator, stream, arena) -> {
            MemorySegment data = communicator.device().allocate(800, arena);
            communicator.allReduce(data, data, communicator.rank() == 1 ? 99 : 100, DataType.INT64, ReduceOp.SUM,
                    stream);
            stream.synchronize(TIMEOUT);
        });
        for (Throwable failure : thrown) {
            assertTrue(
                    failure != null && failure.getMessage().contains("the ranks disagree")
                            && failure.getMessage().contains("all-reduce of 792 bytes at 0, int64, sum"),
                    String.valueOf(failure));
        }
    }

    @Test
    void oneRankWithoutItIsEnoughToLeaveItOff() throws Exception {
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            Map<String, String> settings = settings();
            settings.put("NCCL_COLLNET_ENABLE", "" + rank);
            try (Communicator communicator = EngineGroup.join(directory, rank, 2, settings);
                    Arena arena = Arena.ofShared();
                    DeviceStream stream = communicator.device().newStream()) {
                MemorySegment data = filled(communicator, 10, arena);
                communicator.allReduce(data, data, 10, DataType.INT64, ReduceOp.SUM, stream);
                stream.synchronize(TIMEOUT);
                assertEquals(19, data.getAtIndex(ValueLayout.JAVA_LONG, 9));
                assertEquals("ring", communicator.route().orElseThrow().algorithm());
            }
            return null;
        });
        thrown.forEach(failure -> assertNull(failure));
    }

    /**
     * Gather and scatter over several channels, in place and not in place. The elements of a rank need less than one
     * slot, or more than all slots.
     */
    @ParameterizedTest
    @CsvSource({"2, auto", "3, socket", "5, auto"})
    void partsAreGatheredAndScattered(int ranks, String network) throws Exception {
        int[] counts = {1, 7, 513, 30_001};
        EngineGroup.ranks(directory, ranks, settings("MILLRACE_COLLNET_MAX_BYTES", "1G", "MILLRACE_NET", network,
                "NCCL_MIN_NCHANNELS", "3", "NCCL_MAX_NCHANNELS", "3"), communicator -> {
                    for (int count : counts) {
                        for (boolean inPlace : new boolean[] {false, true}) {
                            gather(communicator, count, inPlace);
                            scatter(communicator, count, inPlace);
                        }
                    }
                });
    }

    static void gather(Communicator communicator, int count, boolean inPlace) {
        int ranks = communicator.size();
        try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
            MemorySegment all = communicator.device().allocate(8L * count * ranks, arena);
            MemorySegment own = inPlace ? all.asSlice(8L * count * communicator.rank(), 8L * count)
                    : communicator.device().allocate(8L * count, arena);
            for (int at = 0; at < count; at++) {
                own.setAtIndex(ValueLayout.JAVA_LONG, at, 1000L * communicator.rank() + at);
            }
            communicator.allGather(own, all, count, DataType.INT64, stream);
            stream.synchronize(TIMEOUT);
            assertEquals("collnetdirect", communicator.route().orElseThrow().algorithm());
            for (int rank = 0; rank < ranks; rank++) {
                for (int at = 0; at < count; at++) {
                    long found = all.getAtIndex(ValueLayout.JAVA_LONG, (long) rank * count + at);
                    if (found != 1000L * rank + at) {
                        assertEquals(1000L * rank + at, found, "rank " + rank + ", element " + at + " of " + count);
                    }
                }
            }
        }
    }

    static void scatter(Communicator communicator, int count, boolean inPlace) {
        int ranks = communicator.size();
        try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
            MemorySegment all = filled(communicator, count * ranks, arena);
            MemorySegment own = inPlace ? all.asSlice(8L * count * communicator.rank(), 8L * count)
                    : communicator.device().allocate(8L * count, arena);
            communicator.reduceScatter(all, own, count, DataType.INT64, ReduceOp.SUM, stream);
            stream.synchronize(TIMEOUT);
            assertEquals("collnetdirect", communicator.route().orElseThrow().algorithm());
            for (int at = 0; at < count; at++) {
                long sum = (long) ranks * ((long) communicator.rank() * count + at) + ranks * (ranks - 1) / 2;
                long found = own.getAtIndex(ValueLayout.JAVA_LONG, at);
                if (found != sum) {
                    assertEquals(sum, found, "element " + at + " of " + count);
                }
            }
        }
    }

    /**
     * With NCCL_ALGO=collnet, an operation of any size uses the collective network. An operation that the network does
     * not support is refused.
     */
    @Test
    void ncclAlgoMeansIt() throws Exception {
        EngineGroup.ranks(directory, 2, settings("MILLRACE_COLLNET_MAX_BYTES", "1", "NCCL_ALGO", "collnet"),
                (communicator, stream, arena) -> {
                    MemorySegment data = filled(communicator, 20_000, arena);
                    communicator.allReduce(data, data, 20_000, DataType.INT64, ReduceOp.SUM, stream);
                    stream.synchronize(TIMEOUT);
                    assertEquals("collnetdirect", communicator.route().orElseThrow().algorithm());
                    assertEquals(2 * 19_999 + 1, data.getAtIndex(ValueLayout.JAVA_LONG, 19_999));
                    gather(communicator, 20_000, false);
                    scatter(communicator, 20_000, false);
                    String refused = assertThrows(MillraceException.class,
                            () -> communicator.allReduce(data, data, 1, DataType.INT64, ReduceOp.AVG, stream))
                            .getMessage();
                    assertTrue(refused.contains("NCCL_ALGO allows only collnet"), refused);
                });
    }

    @Test
    void anotherJarsNetworkIsTaken() throws Exception {
        Thread self = Thread.currentThread();
        ClassLoader usual = self.getContextClassLoader();
        try (var services = CountingCollectives.find()) {
            self.setContextClassLoader(services);
            EngineGroup.ranks(directory, 3, settings(), (communicator, stream, arena) -> {
                MemorySegment data = filled(communicator, 100, arena);
                communicator.allReduce(data, data, 100, DataType.INT64, ReduceOp.SUM, stream);
                stream.synchronize(TIMEOUT);
                assertEquals(3 * 99 + 3, data.getAtIndex(ValueLayout.JAVA_LONG, 99));
                communicator.allReduce(data, data, 100, DataType.INT64, ReduceOp.PROD, stream);
                stream.synchronize(TIMEOUT);
                assertEquals("tree", communicator.route().orElseThrow().algorithm());
            });
            assertEquals(3, CountingCollectives.REQUESTS.get());
        } finally {
            self.setContextClassLoader(usual);
        }
    }

    /** The last rank aborts before the second operation. The other ranks wait in the network, and receive an error. */
    @Test
    void whoWaitsForARankThatGivesUpIsTold() throws Exception {
        List<Throwable> thrown = EngineGroup.thrown(directory, 3, settings(), (communicator, stream, arena) -> {
            MemorySegment data = filled(communicator, 100, arena);
            communicator.allReduce(data, data, 100, DataType.INT64, ReduceOp.SUM, stream);
            stream.synchronize(TIMEOUT);
            if (communicator.rank() == 2) {
                communicator.abort();
                return;
            }
            communicator.allReduce(data, data, 100, DataType.INT64, ReduceOp.SUM, stream);
            stream.synchronize(TIMEOUT);
        });
        assertNull(thrown.get(2));
        for (Throwable failure : thrown.subList(0, 2)) {
            assertTrue(failure instanceof AbortedException || failure instanceof PeerLostException,
                    String.valueOf(failure));
        }
    }
}
