package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.AbortedException;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.PeerLostException;
import org.millrace.ReduceOp;
import org.millrace.Route;

/**
 * A collective network that contains only one rank of each host, the leader. The other ranks of a host exchange data
 * with their leader.
 */
class CollNetLeadersTest extends EngineFixture {

    /** Runs each rank on an invented host: one letter of {@code hosts} per rank. */
    private List<Throwable> onHosts(String hosts, Map<String, String> settings, EngineGroup.RankBody body)
            throws InterruptedException {
        return EngineGroup.call(hosts.length(), rank -> () -> {
            Map<String, String> own = new HashMap<>(settings);
            own.put("NCCL_HOSTID", hosts.substring(rank, rank + 1));
            try (Communicator communicator = EngineGroup.join(directory, rank, hosts.length(), own)) {
                body.run(communicator);
            }
            return null;
        });
    }

    /**
     * Only the leaders of the hosts reach the network. Each other rank passes its data to the previous rank of its
     * host.
     */
    @ParameterizedTest
    @CsvSource({"aaabb, auto, collnet, 1", "abab, socket, collnet, 2", "aaa, auto, collnetchain, 1",
            "abc, auto, collnetchain, 3"})
    void leadersReduceForTheirHosts(String hosts, String network, String algorithm, int channels) throws Exception {
        int ranks = hosts.length();
        int[] counts = {8193, 20_001};
        List<Throwable> thrown = onHosts(hosts, CollNetTest.settings("MILLRACE_NET", network, "NCCL_ALGO", algorithm,
                "NCCL_MIN_NCHANNELS", "" + channels, "org.millrace.engine.firstStep", "4294967290"), communicator -> {
                    boolean leader = hosts.indexOf(hosts.charAt(communicator.rank())) == communicator.rank();
                    try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                        for (int count : counts) {
                            MemorySegment data = CollNetTest.filled(communicator, count, arena);
                            communicator.allReduce(data, data, count, DataType.INT64, ReduceOp.SUM, stream);
                            stream.synchronize(TIMEOUT);
                            for (int at = 0; at < count; at++) {
                                long sum = (long) ranks * at + ranks * (ranks - 1) / 2;
                                if (sum != data.getAtIndex(ValueLayout.JAVA_LONG, at)) {
                                    assertEquals(sum, data.getAtIndex(ValueLayout.JAVA_LONG, at),
                                            "element " + at + " of " + count);
                                }
                            }
                            Route route = communicator.route().orElseThrow();
                            assertEquals("collnetchain", route.algorithm());
                            assertEquals(leader, route.transports().contains("COLLNET"), route.toString());
                        }
                        MemorySegment own = CollNetTest.filled(communicator, 1, arena);
                        communicator.allReduce(own, own, 1, DataType.INT64, ReduceOp.MAX, stream);
                        stream.synchronize(TIMEOUT);
                        assertEquals(ranks - 1, own.get(ValueLayout.JAVA_LONG, 0));
                    }
                });
        thrown.forEach(failure -> assertNull(failure));
    }

    /**
     * All-reduces of any size run over the leaders. In all other operations, every rank uses the collective network
     * itself.
     */
    @Test
    void eachRankAsksForWhatLeadersDoNot() throws Exception {
        List<Throwable> thrown =
                onHosts("aabb", CollNetTest.settings("MILLRACE_COLLNET_MAX_BYTES", "1G"), communicator -> {
                    try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                        MemorySegment data = CollNetTest.filled(communicator, 10, arena);
                        communicator.allReduce(data, data, 10, DataType.INT64, ReduceOp.SUM, stream);
                        stream.synchronize(TIMEOUT);
                        assertEquals("collnetchain", communicator.route().orElseThrow().algorithm());
                        assertEquals(4 * 9 + 6, data.getAtIndex(ValueLayout.JAVA_LONG, 9));
                    }
                    CollNetTest.gather(communicator, 3001, false);
                    assertEquals(List.of("COLLNET"), communicator.route().orElseThrow().transports());
                    CollNetTest.scatter(communicator, 3001, true);
                });
        thrown.forEach(failure -> assertNull(failure));
    }

    @Test
    void aLeaderThatGivesUpIsMissedByAll() throws Exception {
        List<Throwable> thrown = onHosts("aabb", CollNetTest.settings("NCCL_ALGO", "collnetchain"), communicator -> {
            try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                MemorySegment data = CollNetTest.filled(communicator, 10_000, arena);
                communicator.allReduce(data, data, 10_000, DataType.INT64, ReduceOp.SUM, stream);
                stream.synchronize(TIMEOUT);
                if (communicator.rank() == 2) {
                    communicator.abort();
                    return;
                }
                communicator.allReduce(data, data, 10_000, DataType.INT64, ReduceOp.SUM, stream);
                stream.synchronize(TIMEOUT);
            }
        });
        for (int rank : new int[] {0, 1, 3}) {
            assertTrue(thrown.get(rank) instanceof AbortedException || thrown.get(rank) instanceof PeerLostException,
                    "rank " + rank + ": " + thrown.get(rank));
        }
        assertNull(thrown.get(2));
    }
}
