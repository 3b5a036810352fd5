package org.millrace.cli.perf;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.ReduceOp;
import org.millrace.Registration;
import org.millrace.cli.run.RunDeadline;

/**
 * One rank's part of collectives on random operands. The rank can compare its results with a {@link Reference}, which
 * is independent of the measured code. Used by one thread.
 */
public final class CheckedCollectives implements AutoCloseable {

    private final Communicator communicator;
    private final DeviceStream stream;
    private final OperandMemory memory;
    private final MemorySegment send;
    private final MemorySegment receive;
    private final List<Registration> registrations;
    private final RunDeadline deadline;

    /**
     * @param deadline  deadline of all operations together
     * @param registers whether the operands are registered, so that they are used in place where that is possible
     */
    public CheckedCollectives(Communicator communicator, DeviceStream stream, Arena arena, long largest,
            RunDeadline deadline, boolean registers) {
        this.communicator = communicator;
        this.stream = stream;
        this.deadline = deadline;
        memory = new OperandMemory(communicator.device(), stream, deadline, arena);
        send = communicator.device().allocate(largest, arena);
        receive = communicator.device().allocate(largest, arena);
        registrations = registers ? List.of(communicator.register(send), communicator.register(receive)) : List.of();
    }

    /**
     * Returns the send and receive operands for the given number of elements. If operands have a part for each rank,
     * the number is rounded down to a multiple of the number of parts.
     */
    public OperandBuffers place(CollectiveCall call, DataType type, Reduction reduction, long elements,
            boolean inPlace) {
        return OperandBuffers.of(call, type, reduction, elements, communicator.rank(), send, inPlace ? send : receive);
    }

    void fill(OperandBuffers buffers, RandomOperands operands) {
        memory.fill(buffers.send(), reference(buffers, operands), communicator.rank());
    }

    /** Enqueues an operation several times and waits until the last of these operations is complete. */
    void run(OperandBuffers buffers, int times) {
        ReduceOp op = buffers.reduction().operation(communicator.rank());
        for (int i = 0; i < times; i++) {
            buffers.call()
                    .enqueue(communicator, buffers.send(), buffers.receive(), buffers.count(), buffers.type(), op,
                            stream);
        }
        stream.synchronize(deadline.remaining());
    }

    /**
     * Runs an operation once, on new operands. The result of an earlier operation therefore cannot be mistaken for the
     * result of this operation.
     *
     * @return number of wrong elements in this rank's result
     */
    public long countWrong(OperandBuffers buffers, RandomOperands operands) {
        Reference reference = reference(buffers, operands);
        if (!buffers.overwritesOperand()) {
            memory.poison(buffers.receive());
        }
        memory.fill(buffers.send(), reference, communicator.rank());
        run(buffers, 1);
        return memory.countWrong(buffers.receive(), reference,
                buffers.call().result(communicator.rank(), buffers.count()));
    }

    private Reference reference(OperandBuffers buffers, RandomOperands operands) {
        return Reference.of(buffers.type(), buffers.reduction(), communicator.size(), operands);
    }

    /**
     * Returns a condition that is true on all ranks if the given condition is true on any rank. All ranks must evaluate
     * the returned condition together. The ranks use the returned condition to stop at the same operation, because an
     * operation that only some ranks begin never completes.
     */
    BooleanSupplier forAny(BooleanSupplier question) {
        return () -> memory.exchange(question.getAsBoolean() ? 1 : 0,
                word -> communicator.allReduce(word, word, 1, DataType.INT64, ReduceOp.MAX, stream)) != 0;
    }

    /** Closes the registrations, before the operands are freed. */
    @Override
    public void close() {
        registrations.forEach(Registration::close);
    }
}
