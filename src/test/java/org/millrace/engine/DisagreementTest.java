package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.ReduceOp;

/** Ranks with different programs. Every rank learns which rank called which operation. */
class DisagreementTest extends EngineFixture {

    private static void call(Communicator communicator, String what, Arena arena, DeviceStream stream) {
        String[] words = what.strip().split(" ");
        int count = Integer.parseInt(words[1]);
        DataType type = DataType.valueOf(words[2]);
        int number = words.length > 3 ? Integer.parseInt(words[3]) : 0;
        long bytes = (long) count * type.bytes() * communicator.size();
        MemorySegment send = communicator.device().allocate(bytes, arena);
        MemorySegment receive = communicator.device().allocate(bytes, arena);
        switch (words[0]) {
            case "all_reduce" -> communicator.allReduce(send, receive, count, type, ReduceOp.SUM, stream);
            case "maximum" -> communicator.allReduce(send, receive, count, type, ReduceOp.MAX, stream);
            case "all_gather" -> communicator.allGather(send, receive, count, type, stream);
            case "reduce_scatter" -> communicator.reduceScatter(send, receive, count, type, ReduceOp.SUM, stream);
            case "broadcast" -> communicator.broadcast(send, receive, count, type, number, stream);
            case "reduce" -> communicator.reduce(send, receive, count, type, ReduceOp.SUM, number, stream);
            case "alltoall" -> communicator.allToAll(send, receive, count, type, stream);
            case "gather" -> communicator.gather(send, receive, count, type, number, stream);
            case "scatter" -> communicator.scatter(send, receive, count, type, number, stream);
            case "send" -> communicator.send(send, count, type, number, stream);
            case "receive" -> communicator.receive(receive, count, type, number, stream);
            default -> throw new AssertionError(what);
        }
    }

    /** Rank 1 calls a different operation than all other ranks. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                    "3 | all_reduce 1000 INT64  | all_reduce 500 INT64      | all_reduce of 1000 int64, sum    | all_reduce of 500 int64, sum",
                    "3 | all_reduce 1000 INT64  | maximum 1000 INT64        | all_reduce of 1000 int64, sum    | all_reduce of 1000 int64, max",
                    "3 | all_reduce 1000 INT64  | all_reduce 1000 FLOAT64   | all_reduce of 1000 int64, sum    | all_reduce of 1000 double, sum",
                    "4 | all_reduce 1000 INT64  | all_reduce 1000000 INT64  | all_reduce of 1000 int64, sum    | all_reduce of 1000000 int64, sum",
                    "3 | all_reduce 1000 INT64  | all_reduce 0 INT64        | all_reduce of 1000 int64, sum    | all_reduce of 0 int64, sum",
                    "4 | all_gather 1000 INT8   | all_gather 999 INT8       | all_gather of 1000 int8          | all_gather of 999 int8",
                    "3 | all_gather 1000 INT64  | reduce_scatter 1000 INT64 | all_gather of 1000 int64         | reduce_scatter of 1000 int64, sum",
                    "3 | reduce_scatter 10 INT8 | reduce_scatter 11 INT8    | reduce_scatter of 10 int8, sum   | reduce_scatter of 11 int8, sum",
                    "2 | broadcast 10 INT8 0    | broadcast 11 INT8 0       | broadcast of 10 int8, root 0     | broadcast of 11 int8, root 0",
                    "3 | broadcast 10 INT8 0    | broadcast 10 INT8 2       | broadcast of 10 int8, root 0     | broadcast of 10 int8, root 2",
                    "2 | broadcast 10 INT8 0    | reduce 10 INT8 0          | broadcast of 10 int8, root 0     | reduce of 10 int8, sum, root 0",
                    "3 | alltoall 10 INT8       | alltoall 11 INT8          | sendrecv of 10 int8              | sendrecv of 11 int8",
                    "3 | gather 10 INT32 0      | gather 10 INT8 0          | sendrecv of 10 int32             | sendrecv of 10 int8",
                    "3 | scatter 100000 INT32 0 | scatter 10 INT32 0        | sendrecv of 100000 int32         | sendrecv of 10 int32",
                    "2 | send 100 INT32 1       | receive 99 INT32 0        | sendrecv of 100 int32            | sendrecv of 99 int32",
                    "2 | send 100 INT32 1       | receive 0 INT32 0         | sendrecv of 100 int32            | sendrecv of 0 int32",})
    void everybodyHearsWhoCalledWhat(int ranks, String most, String rankOne, String first, String second)
            throws Exception {
        Map<String, String> settings = EngineGroup.settings("NCCL_BUFFSIZE", "32K");
        List<Throwable> thrown = EngineGroup.thrown(directory, ranks, settings, (communicator, stream, arena) -> {
            call(communicator, communicator.rank() == 1 ? rankOne : most, arena, stream);
            stream.synchronize(TIMEOUT);
            // a rank may complete its part before another rank detects the disagreement
            call(communicator, "all_reduce 1 INT8", arena, stream);
            stream.synchronize(TIMEOUT);
        });
        for (Throwable failure : thrown) {
            assertNotNull(failure, "every rank should have failed: " + thrown);
            String message = failure.getMessage();
            // one of the disagreeing ranks may have reached its next call before the detection
            assertTrue(message.contains("the ranks disagree: rank ")
                    && (message.contains(first) || message.contains(second)), message);
        }
    }
}
