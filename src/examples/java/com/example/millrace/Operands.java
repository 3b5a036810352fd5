package com.example.millrace;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.ReduceOp;

/**
 * Operands of operations: arrays, buffers and device memory. An operation returns a stage, which is complete when the
 * operation is. The two ranks are threads of this process, and a builder sets their settings.
 */
public final class Operands {

    public static void main(String[] args) throws Exception {
        Ranks.run(2, Operands::rank);
    }

    private static void rank(String rendezvous, int rank, int size) throws Exception {
        try (Communicator communicator = Millrace.builder()
                .rendezvous(rendezvous)
                .rank(rank)
                .size(size)
                .device("host")
                .stallDeadline(Duration.ofSeconds(20))
                .join(); DeviceStream stream = communicator.device().newStream(); Arena arena = Arena.ofShared()) {
            ByteBuffer greeting = ByteBuffer.allocateDirect(5);
            if (rank == 0) {
                greeting.put("hello".getBytes(StandardCharsets.UTF_8)).flip();
            }
            CompletionStage<Void> told = communicator.broadcast(Operand.of(greeting, DataType.INT8), 0, stream)
                    .thenRun(() -> System.out
                            .println("rank " + rank + " was told " + StandardCharsets.UTF_8.decode(greeting)));

            int[] mine = {rank, 10 * rank};
            int[] all = new int[mine.length * size];
            CompletionStage<Void> gathered = communicator.allGather(Operand.of(mine), Operand.of(all), stream);

            // Device memory is used in place. On a GPU nothing is copied to the host and back.
            MemorySegment memory = communicator.device().allocate(3 * Double.BYTES, arena);
            CompletionStage<Void> sum =
                    communicator.allReduce(Operand.of(memory, DataType.FLOAT64), ReduceOp.SUM, stream);

            gathered.thenCombine(sum, (_, _) -> "rank " + rank + " has " + Arrays.toString(all))
                    .thenAccept(System.out::println)
                    .thenCombine(told, (_, _) -> true)
                    .toCompletableFuture()
                    .get(30, TimeUnit.SECONDS);
        }
    }
}
