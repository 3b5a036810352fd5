package org.millrace.cli.perf;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.stream.IntStream;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Operation;
import org.millrace.ReduceOp;

/**
 * An operation that the ranks of a communicator call, with the required result of each rank. In each method, {@code
 * count} is the count that the call receives, as in nccl-tests' table.
 */
public record CollectiveCall(Operation operation, int ranks) {

    static final int ROOT = 0;

    /**
     * A part of a rank's result: {@code count} elements from the index {@code first} of an operand. A result's parts
     * are listed in the order of their positions.
     *
     * @param source rank that owns the copied operand; {@link #ALL} for the reduction of all ranks' operands
     */
    record Part(int source, long first, long count) {

        static final int ALL = -1;

        static Part reduced(long first, long count) {
            return new Part(ALL, first, count);
        }

        static Part copied(int source, long first, long count) {
            return new Part(source, first, count);
        }
    }

    /**
     * Enqueues the operation once. The operation is in place if {@code send} and {@code receive} are the ranges of one
     * operand at {@link Operation#sendOffset} and {@link Operation#receiveOffset}.
     */
    void enqueue(Communicator communicator, MemorySegment send, MemorySegment receive, long count, DataType type,
            ReduceOp op, DeviceStream stream) {
        switch (operation) {
            case ALL_REDUCE -> communicator.allReduce(send, receive, count, type, op, stream);
            case ALL_GATHER -> communicator.allGather(send, receive, count, type, stream);
            case REDUCE_SCATTER -> communicator.reduceScatter(send, receive, count, type, op, stream);
            case BROADCAST -> communicator.broadcast(send, receive, count, type, ROOT, stream);
            case REDUCE -> communicator.reduce(send, receive, count, type, op, ROOT, stream);
            case ALL_TO_ALL -> communicator.allToAll(send, receive, count, type, stream);
            case GATHER -> communicator.gather(send, receive, count, type, ROOT, stream);
            case SCATTER -> communicator.scatter(send, receive, count, type, ROOT, stream);
            case SEND_RECEIVE -> communicator.group(() -> {
                communicator.send(send, count, type, (communicator.rank() + 1) % ranks, stream);
                communicator.receive(receive, count, type, (communicator.rank() + ranks - 1) % ranks, stream);
            });
        }
    }

    /**
     * Returns the required content of a rank's receive operand. For a gather or a reduce, ranks other than the root
     * have no result.
     */
    List<Part> result(int rank, long count) {
        return switch (operation) {
            case ALL_REDUCE -> List.of(Part.reduced(0, count));
            case ALL_GATHER -> copied(0, count);
            case REDUCE_SCATTER -> List.of(Part.reduced(rank * count, count));
            case BROADCAST -> List.of(Part.copied(ROOT, 0, count));
            case REDUCE -> rank == ROOT ? List.of(Part.reduced(0, count)) : List.of();
            case ALL_TO_ALL -> copied(rank * count, count);
            case GATHER -> rank == ROOT ? copied(0, count) : List.of();
            case SCATTER -> List.of(Part.copied(ROOT, rank * count, count));
            case SEND_RECEIVE -> List.of(Part.copied((rank + ranks - 1) % ranks, 0, count));
        };
    }

    /** Returns the given range of every rank's operand, in the order of the ranks. */
    private List<Part> copied(long first, long count) {
        return IntStream.range(0, ranks).mapToObj(source -> Part.copied(source, first, count)).toList();
    }
}
