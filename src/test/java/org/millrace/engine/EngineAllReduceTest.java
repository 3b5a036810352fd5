package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.ReduceOp;

/**
 * All-reduce through the whole stack: engine, emulated device, proxies, TCP. Other tests check types and rounding. This
 * test checks that the data arrives.
 */
class EngineAllReduceTest extends EngineFixture {

    @ParameterizedTest
    @CsvSource({"1, 1000, 1, 0", "2, 1, 1, 0", "2, 100003, 1, 0", "2, 1000003, 3, 0", "3, 77777, 2, 0",
            "4, 50001, 1, 0", "8, 10007, 1, 0", "5, 3, 2, 0", "2, 300007, 1, 2147483644", "3, 300007, 2, 4294967292",
            "2, 300007, 2, 9223372036854775804"})
    void everyRankGetsTheSum(int ranks, int count, int channels, long firstStep) throws Exception {
        Map<String, String> settings = EngineGroup.settings("NCCL_MIN_NCHANNELS", "" + channels,
                "org.millrace.engine.firstStep", "" + firstStep, "NCCL_BUFFSIZE", "256K");
        EngineGroup.ranks(directory, ranks, settings, (communicator, stream, arena) -> {
            for (boolean inPlace : new boolean[] {false, true}) {
                reduceAndCheck(communicator, stream, arena, count, inPlace);
            }
        });
    }

    private static void reduceAndCheck(Communicator communicator, DeviceStream stream, Arena arena, int count,
            boolean inPlace) {
        MemorySegment send = communicator.device().allocate(8L * count, arena);
        MemorySegment receive = inPlace ? send : communicator.device().allocate(8L * count, arena);
        for (int i = 0; i < count; i++) {
            send.setAtIndex(ValueLayout.JAVA_LONG, i, value(communicator.rank(), i));
        }
        communicator.allReduce(send, receive, count, DataType.INT64, ReduceOp.SUM, stream);
        stream.synchronize(TIMEOUT);
        for (int i = 0; i < count; i++) {
            long expected = 0;
            for (int rank = 0; rank < communicator.size(); rank++) {
                expected += value(rank, i);
            }
            assertEquals(expected, receive.getAtIndex(ValueLayout.JAVA_LONG, i),
                    "element " + i + " on rank " + communicator.rank());
        }
    }

    private static long value(int rank, int index) {
        return (rank + 1) * 0x9E3779B97F4A7C15L + index * 31L;
    }

    @Test
    void operationsOfOneStreamRunInOrderWithoutWaitingInBetween() throws Exception {
        EngineGroup.ranks(directory, 3, EngineGroup.settings(), (communicator, stream, arena) -> {
            MemorySegment data = communicator.device().allocate(8 * 1000, arena);
            data.fill((byte) 0);
            data.set(ValueLayout.JAVA_LONG, 0, 1);
            for (int i = 0; i < 20; i++) {
                communicator.allReduce(data, data, 1000, DataType.INT64, ReduceOp.SUM, stream);
            }
            stream.synchronize(TIMEOUT);
            assertEquals(3486784401L, data.get(ValueLayout.JAVA_LONG, 0), "3 to the 20th");
        });
    }
}
