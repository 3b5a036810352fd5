package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.ReduceOp;

/**
 * Ranks of one process with an emulated link between them. No operation is faster than the link, and all results are
 * right.
 */
@Timeout(120)
class LinkedRanksTest {

    private static final Duration TIMEOUT = Duration.ofSeconds(60);
    private static final int COUNT = 1 << 20;
    private static final long DELAY = Duration.ofMillis(20).toNanos();
    /**
     * Transmission time of an operand over the link, in nanoseconds. In an all-reduce of two ranks, each rank sends as
     * many bytes as its operand has.
     */
    private static final long ON_THE_LINE = COUNT * 4L * Byte.SIZE * 1_000_000_000L / 400_000_000L;

    @TempDir
    Path directory;

    @ParameterizedTest
    @ValueSource(strings = {"auto", "socket"})
    void nothingIsQuickerThanTheLink(String network) throws Exception {
        Map<String, String> settings =
                EngineGroup.settings("MILLRACE_NET", network, "MILLRACE_LINK", "rate=400Mbit,delay=20ms");
        EngineGroup.ranks(directory, 2, settings, (communicator, stream, arena) -> {
            MemorySegment data = communicator.device().allocate(COUNT * 4L, arena);
            for (int count : new int[] {1, COUNT, 1}) {
                for (int i = 0; i < count; i++) {
                    data.setAtIndex(ValueLayout.JAVA_INT, i, i + communicator.rank());
                }
                communicator.barrier();
                long began = System.nanoTime();
                communicator.allReduce(data, data, count, DataType.INT32, ReduceOp.SUM, stream);
                stream.synchronize(TIMEOUT);
                long took = System.nanoTime() - began;
                // The measured time may exclude the link's delay. This rank may leave the barrier one link delay after
                // the other rank. The other rank's data then arrives without a measured delay.
                assertTrue(count == 1 || took > ON_THE_LINE, count + " elements took " + took + " ns");
                for (int i = 0; i < count; i++) {
                    assertEquals(2 * i + 1, data.getAtIndex(ValueLayout.JAVA_INT, i));
                }
            }
            long began = System.nanoTime();
            for (int i = 0; i < 10; i++) {
                communicator.barrier();
            }
            assertTrue(System.nanoTime() - began >= 9 * DELAY, "each barrier waits for the other rank's word");
            assertFalse(communicator.route().orElseThrow().transports().contains("P2P"), "shared memory passes it by");
        });
    }

    /**
     * Each of the three ranks acts as a host. Data of two hosts can use only the link between these two hosts, because
     * no other path exists.
     */
    @ParameterizedTest
    @ValueSource(strings = {"auto", "socket"})
    void eachPairOfHostsHasItsLink(String network) throws Exception {
        String[] hosts = {"a", "b-1", "c"};
        List<Throwable> thrown = EngineGroup.call(hosts.length, rank -> () -> {
            Map<String, String> settings = EngineGroup.settings("MILLRACE_NET", network, "NCCL_HOSTID", hosts[rank],
                    "MILLRACE_LINK", "b-1-a: delay=1ms; a-c: delay=20ms; down");
            try (Communicator communicator = EngineGroup.join(directory, rank, hosts.length, settings);
                    Arena arena = Arena.ofShared();
                    DeviceStream stream = communicator.device().newStream()) {
                MemorySegment data = communicator.device().allocate(Integer.BYTES, arena);
                for (int peer = 1; peer < hosts.length; peer++) {
                    long began = System.nanoTime();
                    data.set(ValueLayout.JAVA_INT, 0, 10 * peer);
                    if (rank == 0) {
                        communicator.send(data, 1, DataType.INT32, peer, stream);
                        communicator.receive(data, 1, DataType.INT32, peer, stream);
                        stream.synchronize(TIMEOUT);
                        assertEquals(10 * peer + peer, data.get(ValueLayout.JAVA_INT, 0));
                        assertTrue(peer == 1 || System.nanoTime() - began >= 2 * DELAY, "quicker than its link");
                    } else if (rank == peer) {
                        communicator.receive(data, 1, DataType.INT32, 0, stream);
                        stream.synchronize(TIMEOUT);
                        data.set(ValueLayout.JAVA_INT, 0, data.get(ValueLayout.JAVA_INT, 0) + rank);
                        communicator.send(data, 1, DataType.INT32, 0, stream);
                        stream.synchronize(TIMEOUT);
                    }
                }
            }
            return null;
        });
        thrown.forEach(failure -> assertNull(failure));
    }
}
