package org.millrace.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.Registration;

/**
 * One operation of a test program, with its input, its call and its expected result. All ranks have equal operations.
 * Elements are {@code int32}.
 *
 * @param operation the operation
 * @param count     number of elements, with the meaning of the call's count
 * @param op        operator of an operation that reduces
 * @param root      root of the operation, if it has a root; distance to the peer for a send and a receive
 * @param inPlace   whether the call runs in place, if the operation can run in place
 * @param seed      seed of the elements
 */
record Call(Operation operation, int count, ReduceOp op, int root, boolean inPlace, long seed) {

    /** A call that was enqueued. Its memory must be checked after its stream has completed. */
    final class Running {

        private final int rank;
        private final int ranks;
        private final MemorySegment send;
        private final MemorySegment receive;
        private final List<Registration> registrations;

        Running(Communicator communicator, DeviceStream stream, Arena arena) {
            this(communicator, stream, arena, false);
        }

        /** @param registers whether this rank registers the call's memory first; the value may differ between ranks */
        Running(Communicator communicator, DeviceStream stream, Arena arena, boolean registers) {
            rank = communicator.rank();
            ranks = communicator.size();
            long sent = (long) count * (spreadsSend() ? ranks : 1);
            long received = (long) count * (spreadsReceive() ? ranks : 1);
            boolean same = inPlace && operation != Operation.ALL_TO_ALL && operation != Operation.SEND_RECEIVE;
            MemorySegment larger = communicator.device().allocate(4 * Math.max(sent, received), arena);
            if (same) {
                send = sent < received ? larger.asSlice(4L * count * rank, 4L * count) : larger;
                receive = received < sent ? larger.asSlice(4L * count * rank, 4L * count) : larger;
            } else {
                send = larger;
                receive = communicator.device().allocate(4 * received, arena);
            }
            receive.fill((byte) 0x5a);
            for (int i = 0; i < sent; i++) {
                send.setAtIndex(ValueLayout.JAVA_INT, i, value(rank, i));
            }
            registrations = registers && sent + received > 0 ? register(communicator) : List.of();
            enqueue(communicator, stream);
        }

        private List<Registration> register(Communicator communicator) {
            return List.of(communicator.register(send), communicator.register(receive));
        }

        /** Closes the registrations of the call's memory, so that the memory can be freed. */
        void release() {
            registrations.forEach(Registration::close);
        }

        private void enqueue(Communicator communicator, DeviceStream stream) {
            DataType type = DataType.INT32;
            switch (operation) {
                case ALL_REDUCE -> communicator.allReduce(send, receive, count, type, op, stream);
                case ALL_GATHER -> communicator.allGather(send, receive, count, type, stream);
                case REDUCE_SCATTER -> communicator.reduceScatter(send, receive, count, type, op, stream);
                case BROADCAST ->
                    communicator.broadcast(rank == root ? send : null, receive, count, type, root, stream);
                case REDUCE -> communicator.reduce(send, rank == root ? receive : null, count, type, op, root, stream);
                case ALL_TO_ALL -> communicator.allToAll(send, receive, count, type, stream);
                case GATHER -> communicator.gather(send, rank == root ? receive : null, count, type, root, stream);
                case SCATTER -> communicator.scatter(rank == root ? send : null, receive, count, type, root, stream);
                case SEND_RECEIVE -> communicator.group(() -> {
                    communicator.send(send, count, type, (rank + root) % ranks, stream);
                    communicator.receive(receive, count, type, (rank - root + ranks) % ranks, stream);
                });
                default -> throw new AssertionError(operation);
            }
        }

        /**
         * Compares the result of the completed call. Returns null if the result is right, otherwise a description of
         * the first wrong element.
         */
        String wrong() {
            boolean hasResult = rank == root || operation != Operation.REDUCE && operation != Operation.GATHER;
            long received = hasResult ? (long) count * (spreadsReceive() ? ranks : 1) : 0;
            for (int i = 0; i < received; i++) {
                int expected = expected(i);
                int found = receive.getAtIndex(ValueLayout.JAVA_INT, i);
                if (found != expected) {
                    return Call.this + ", rank " + rank + " of " + ranks + ", element " + i + ": " + found
                            + " instead of " + expected;
                }
            }
            return null;
        }

        private int expected(int i) {
            return switch (operation) {
                case ALL_REDUCE, REDUCE -> reduced(i);
                case REDUCE_SCATTER -> reduced(rank * count + i);
                case BROADCAST -> value(root, i);
                case ALL_GATHER, GATHER -> value(i / count, i % count);
                case ALL_TO_ALL -> value(i / count, rank * count + i % count);
                case SCATTER -> value(root, rank * count + i);
                case SEND_RECEIVE -> value((rank - root + ranks) % ranks, i);
                default -> throw new AssertionError(operation);
            };
        }

        private int reduced(int i) {
            if (op instanceof ReduceOp.PreMulSum(double scalar)) {
                int sum = 0;
                for (int each = 0; each < ranks; each++) {
                    sum += (int) scalar * value(each, i);
                }
                return sum;
            }
            int result = value(0, i);
            for (int each = 1; each < ranks; each++) {
                int other = value(each, i);
                result = switch ((ReduceOp.BuiltIn) op) {
                    case SUM, AVG -> result + other;
                    case PROD -> result * other;
                    case MAX -> Math.max(result, other);
                    case MIN -> Math.min(result, other);
                };
            }
            return op == ReduceOp.AVG ? result / ranks : result;
        }
    }

    private boolean spreadsSend() {
        return operation == Operation.ALL_TO_ALL || operation == Operation.REDUCE_SCATTER
                || operation == Operation.SCATTER;
    }

    private boolean spreadsReceive() {
        return operation == Operation.ALL_TO_ALL || operation == Operation.ALL_GATHER || operation == Operation.GATHER;
    }

    private int value(int rank, int index) {
        long mixed = (seed * 31 + rank) * 0x9E3779B97F4A7C15L + index * 0x2545F4914F6CDD1DL;
        return (int) (mixed >>> 32) >> 4; // the value is small, so that sums do not overflow
    }
}
