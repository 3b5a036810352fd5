package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.ReduceOp;
import org.millrace.abi.KernelChannel;
import org.millrace.device.DeviceChannel;
import org.millrace.device.DeviceCommunicator;
import org.millrace.engine.Topology.TreePlace;

/** Kernels find their neighbors only in the channels of {@code ncclDevComm}. */
class ChannelsTest extends EngineFixture {

    private static final int RANKS = 4;
    /** Order of the ranks in the ring. The order is neither ascending nor descending, whichever rank is the first. */
    private static final int[] RING = {2, 0, 1, 3};
    private static final int COUNT = 5000;

    private static DeviceCommunicator device(Communicator communicator) {
        return ((EngineCommunicator) communicator).deviceCommunicator();
    }

    private static MemorySegment words(Communicator communicator, Arena arena, int count) {
        MemorySegment words = communicator.device().allocate(8L * count, arena);
        for (int i = 0; i < count; i++) {
            words.setAtIndex(ValueLayout.JAVA_LONG, i, value(communicator.rank(), i));
        }
        return words;
    }

    private static long value(int rank, int index) {
        return (rank + 1) * 1_000_003L + index;
    }

    private static long sum(int index) {
        long sum = 0;
        for (int rank = 0; rank < RANKS; rank++) {
            sum += value(rank, index);
        }
        return sum;
    }

    /** Data passes through slots (threshold 1 GiB), or is sent from the user's memory (threshold 0). */
    @ParameterizedTest
    @ValueSource(strings = {"1G", "0"})
    void dataTravelsAroundTheRingThatTheChannelSays(String threshold) throws Exception {
        EngineGroup.ranks(directory, RANKS, EngineGroup.settings("NCCL_ALGO", "ring", "NCCL_BUFFSIZE", "32K",
                "MILLRACE_PTR_THRESHOLD", threshold, "MILLRACE_NET", "socket"), communicator -> {
                    DeviceChannel channel = device(communicator).channel(0);
                    channel.ring(RING);
                    runAll(communicator);
                    int rank = communicator.rank();
                    int place = Arrays.stream(RING).boxed().toList().indexOf(rank);
                    int next = RING[(place + 1) % RANKS];
                    assertTrue(channel.send(next, KernelChannel.COLLECTIVE).port().step() > 0,
                            "nothing went from rank " + rank + " to rank " + next);
                    for (int peer = 0; peer < RANKS; peer++) {
                        var port = channel.send(peer, KernelChannel.COLLECTIVE).port();
                        assertEquals(peer == next, port != null && port.step() > 0,
                                "rank " + rank + " to rank " + peer);
                    }
                });
    }

    private static void runAll(Communicator communicator) {
        int rank = communicator.rank();
        try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
            MemorySegment reduced = words(communicator, arena, COUNT);
            MemorySegment gathered = communicator.device().allocate(8L * COUNT * RANKS, arena);
            MemorySegment scattered = communicator.device().allocate(8L * COUNT, arena);
            MemorySegment spread = words(communicator, arena, COUNT);
            MemorySegment toRoot = communicator.device().allocate(8L * COUNT, arena);
            communicator.allReduce(reduced, reduced, COUNT, DataType.INT64, ReduceOp.SUM, stream);
            communicator.allGather(words(communicator, arena, COUNT), gathered, COUNT, DataType.INT64, stream);
            communicator.reduceScatter(words(communicator, arena, COUNT * RANKS), scattered, COUNT, DataType.INT64,
                    ReduceOp.SUM, stream);
            communicator.broadcast(spread, spread, COUNT, DataType.INT64, 1, stream);
            communicator.reduce(words(communicator, arena, COUNT), toRoot, COUNT, DataType.INT64, ReduceOp.SUM, 3,
                    stream);
            stream.synchronize(TIMEOUT);
            for (int i = 0; i < COUNT; i++) {
                assertEquals(sum(i), reduced.getAtIndex(ValueLayout.JAVA_LONG, i), "all-reduce");
                assertEquals(sum(rank * COUNT + i), scattered.getAtIndex(ValueLayout.JAVA_LONG, i), "reduce-scatter");
                assertEquals(value(1, i), spread.getAtIndex(ValueLayout.JAVA_LONG, i), "broadcast");
                for (int from = 0; from < RANKS; from++) {
                    assertEquals(value(from, i), gathered.getAtIndex(ValueLayout.JAVA_LONG, from * COUNT + i),
                            "all-gather");
                }
                if (rank == 3) {
                    assertEquals(sum(i), toRoot.getAtIndex(ValueLayout.JAVA_LONG, i), "reduce");
                }
            }
        }
    }

    @Test
    void dataTravelsOverTheTreeThatTheChannelSays() throws Exception {
        // The tree is a chain that starts at rank 2. It differs from both trees that the engine builds.
        int[] up = {2, 0, KernelChannel.NO_RANK, 1};
        int[][] down = {{1}, {3}, {0}, {}};
        EngineGroup.ranks(directory, RANKS, EngineGroup.settings("NCCL_ALGO", "tree"), communicator -> {
            int rank = communicator.rank();
            DeviceChannel channel = device(communicator).channel(0);
            channel.view().tree(3, up[rank], down[rank]);
            try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                MemorySegment data = words(communicator, arena, 100);
                communicator.allReduce(data, data, 100, DataType.INT64, ReduceOp.SUM, stream);
                stream.synchronize(TIMEOUT);
                for (int i = 0; i < 100; i++) {
                    assertEquals(sum(i), data.getAtIndex(ValueLayout.JAVA_LONG, i));
                }
            }
            for (int peer = 0; peer < RANKS; peer++) {
                boolean neighbour = peer == up[rank] || down[rank].length > 0 && peer == down[rank][0];
                var port = channel.send(peer, KernelChannel.COLLECTIVE).port();
                assertEquals(neighbour, port != null && port.step() > 0, "rank " + rank + " to rank " + peer);
            }
        });
    }

    @Test
    void theHostFillsWhatKernelsRead() throws Exception {
        EngineGroup.ranks(directory, RANKS, EngineGroup.settings("NCCL_MIN_NCHANNELS", "3"), communicator -> {
            DeviceCommunicator device = device(communicator);
            int rank = communicator.rank();
            assertEquals(rank, device.view().rank());
            assertEquals(RANKS, device.view().ranks());
            assertEquals(0, device.view().node());
            assertEquals(1, device.view().nodes());
            assertEquals(3, device.channels());
            for (int number = 0; number < 3; number++) {
                KernelChannel channel = device.channel(number).view();
                TreePlace place = TreePlace.of(number % 2, rank, RANKS, true);
                assertEquals((rank + 1) % RANKS, channel.next());
                assertEquals((rank + RANKS - 1) % RANKS, channel.previous());
                assertEquals(rank, channel.index());
                assertEquals(place.parent(), channel.up());
                for (int child = 0; child < KernelChannel.MAX_CHILDREN; child++) {
                    assertEquals(child < place.children().size() ? place.children().get(child) : KernelChannel.NO_RANK,
                            channel.down(child));
                }
                assertEquals(KernelChannel.NO_RANK, channel.network());
            }
        });
    }
}
