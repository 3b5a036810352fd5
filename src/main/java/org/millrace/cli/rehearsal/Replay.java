package org.millrace.cli.rehearsal;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.rehearsal.RecordedRun.Call;
import org.millrace.rehearsal.RecordedRun;

/**
 * Repeats the operations of a recorded rank. All data is zero: new memory is filled with zeros, and sums of zeros stay
 * zero.
 */
final class Replay {

    /** Typical delay of a thread's wakeup after its sleep, in nanoseconds. */
    private static final long LATE_NANOS = 100_000;

    private final Communicator communicator;
    private final DeviceStream stream;
    private final double speed;
    private final Duration deadline;
    private final MemorySegment send;
    private final MemorySegment receive;

    /**
     * @param arena    shared arena, which the caller closes after it has closed the stream
     * @param speed    ratio of the recorded pauses to the replayed pauses
     * @param deadline deadline of each operation
     */
    public Replay(Communicator communicator, DeviceStream stream, Arena arena, List<Call> calls, double speed,
            Duration deadline) {
        this.communicator = communicator;
        this.stream = stream;
        this.speed = speed;
        this.deadline = deadline;
        long longest = 1;
        for (Call call : calls) {
            long parts = call.isTransfer() ? 1 : operation(call).parts(communicator.size());
            longest = Math.max(longest, Math.multiplyExact(Math.max(call.count(), 0), parts * type(call).bytes()));
        }
        send = arena.allocate(longest, Long.BYTES * 8);
        receive = arena.allocate(longest, Long.BYTES * 8);
    }

    private static Operation operation(Call call) {
        for (Operation each : Operation.values()) {
            if (each.label().equals(call.kind())) {
                return each;
            }
        }
        throw new MillraceException("'" + call.kind() + "' is recorded, which the emulated device cannot do again");
    }

    private static DataType type(Call call) {
        try {
            return DataType.ofCode(call.type());
        } catch (IllegalArgumentException unknown) {
            throw new MillraceException(call.kind() + " of elements of type " + call.type()
                    + " is recorded, which the emulated device cannot do again", unknown);
        }
    }

    /** Runs each call once, and waits for it. */
    public void warmUp(List<Call> calls) {
        for (Call call : calls) {
            enqueue(call);
            stream.synchronize(deadline);
        }
    }

    public void run(List<ReplayPlan.Launch> launches) {
        long called = System.nanoTime();
        for (ReplayPlan.Launch launch : launches) {
            if (launch.afterEnd()) {
                stream.synchronize(deadline);
                called = System.nanoTime();
            }
            called += (long) (launch.nanos() / speed);
            waitUntil(called);
            called = System.nanoTime();
            if (launch.calls().size() == 1) {
                enqueue(launch.calls().getFirst());
            } else {
                communicator.group(() -> launch.calls().forEach(this::enqueue));
            }
        }
        stream.synchronize(deadline);
    }

    private static void waitUntil(long time) {
        for (long left = time - System.nanoTime(); left > 0; left = time - System.nanoTime()) {
            if (left > 2 * LATE_NANOS) {
                LockSupport.parkNanos(left - LATE_NANOS);
            } else {
                Thread.yield(); // another rank may need this core
            }
        }
    }

    private void enqueue(Call call) {
        long count = call.count();
        DataType type = type(call);
        if (call.kind().equals(RecordedRun.SEND)) {
            communicator.send(send, count, type, call.peer(), stream);
            return;
        }
        if (call.kind().equals(RecordedRun.RECEIVE)) {
            communicator.receive(receive, count, type, call.peer(), stream);
            return;
        }
        switch (operation(call)) {
            case ALL_REDUCE -> communicator.allReduce(send, receive, count, type, ReduceOp.SUM, stream);
            case ALL_GATHER -> communicator.allGather(send, receive, count, type, stream);
            case REDUCE_SCATTER -> communicator.reduceScatter(send, receive, count, type, ReduceOp.SUM, stream);
            case BROADCAST -> communicator.broadcast(send, receive, count, type, call.root(), stream);
            case REDUCE -> communicator.reduce(send, receive, count, type, ReduceOp.SUM, call.root(), stream);
            case ALL_TO_ALL -> communicator.allToAll(send, receive, count, type, stream);
            case GATHER -> communicator.gather(send, receive, count, type, call.root(), stream);
            case SCATTER -> communicator.scatter(send, receive, count, type, call.root(), stream);
            case SEND_RECEIVE -> throw new MillraceException("a transfer is recorded by its halves");
        }
    }
}
