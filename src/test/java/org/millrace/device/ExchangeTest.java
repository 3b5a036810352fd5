package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.kernel.CollectiveWork;

/**
 * Two ranks run an all-reduce of few elements as one exchange, not as two hops of the ring. A reduction that also
 * scales elements uses two hops.
 */
class ExchangeTest {

    private static final ConnectionLayout LAYOUT = new ConnectionLayout(8192, 8192, 65536);

    @ParameterizedTest
    @CsvSource({"2, 1, SUM, 1", "2, 4096, SUM, 1", "2, 4096, MAX, 1", "2, 4097, SUM, 2", "2, 4096, AVG, 2",
            "2, 4096, SCALED, 2", "3, 1, SUM, 4"})
    void hops(int ranks, int count, String op, int chunks) {
        ReduceOp reduction = op.equals("SCALED") ? new ReduceOp.PreMulSum(2) : ReduceOp.BuiltIn.valueOf(op);
        int number = FunctionNumber.pack(Operation.ALL_REDUCE, CollectiveFunction.Algorithm.RING, Protocol.SIMPLE,
                DataType.FLOAT32, reduction);
        CollectiveFunction function =
                FunctionTable.STANDARD.collective(Operation.ALL_REDUCE, CollectiveFunction.Algorithm.RING);
        try (Arena arena = Arena.ofConfined()) {
            CollectiveWork work = CollectiveWork.of(MemorySegment.ofArray(new long[CollectiveWork.BYTES / Long.BYTES]));
            work.spread(0, 0, count, 0, 0);
            for (int rank = 0; rank < ranks; rank++) {
                DeviceCommunicator communicator =
                        new DeviceCommunicator(arena, rank, new int[ranks], LAYOUT, 1024, 1, 1024, 0);
                ChunkSchedule schedule =
                        function.tasks(number, work, communicator, communicator.channel(0)).getFirst().schedule();
                assertEquals(chunks, schedule.chunksSent(), "rank " + rank);
                assertEquals(chunks, schedule.chunksReceived(), "rank " + rank);
                assertEquals(chunks == 1, function.staysInSlots(number, work, ranks));
            }
        }
    }
}
