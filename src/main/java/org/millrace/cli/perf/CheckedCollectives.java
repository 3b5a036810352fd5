package org.millrace.cli.perf;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.Registration;
import org.millrace.Stream;
import org.millrace.cli.check.CollectiveCall;
import org.millrace.cli.check.OperandMemory;
import org.millrace.cli.check.PerfCase;
import org.millrace.cli.check.Reduction;
import org.millrace.cli.launch.RunDeadline;

/**
 * One rank's part of collectives on random operands, each result compared with a reference that is independent of what
 * ran it. Used by one thread.
 */
public final class CheckedCollectives implements AutoCloseable {

    private final Communicator communicator;
    private final Stream stream;
    private final OperandMemory memory;
    private final MemorySegment send;
    private final MemorySegment receive;
    private final List<Registration> registrations;
    private final RunDeadline deadline;

    /**
     * Checks on a communicator.
     *
     * @param communicator what is checked
     * @param stream       where operations are enqueued
     * @param arena        owner of the operands
     * @param largest      bytes of the largest operand
     * @param patience     how long all operations together may take
     * @param registers    whether the operands are registered, to be used in place where that is possible
     */
    public CheckedCollectives(Communicator communicator, Stream stream, Arena arena, long largest, Duration patience,
            boolean registers) {
        this.communicator = communicator;
        this.stream = stream;
        deadline = RunDeadline.after(patience);
        memory = new OperandMemory(communicator.device(), stream, deadline, communicator.rank(), communicator.size(),
                arena);
        send = communicator.device().allocate(largest, arena);
        receive = communicator.device().allocate(largest, arena);
        registrations = registers ? List.of(communicator.register(send), communicator.register(receive)) : List.of();
    }

    /**
     * Runs an operation once. All ranks do, with the same arguments.
     *
     * @param seed      what operands are made from: nothing else, and nothing that ran before, decides upon them
     * @param operation which one
     * @param type      type of the elements
     * @param reduction number of the reduction, of any size; of no meaning where nothing is reduced
     * @param bytes     of the larger operand, rounded down to what every rank has the same part of, but for an element
     *                  of each
     * @param inPlace   whether it is to run in place, where it can
     * @return how many elements of this rank's result are wrong
     * @throws org.millrace.MillraceException if it fails, or is not done in time
     */
    public long countWrong(long seed, Operation operation, DataType type, int reduction, long bytes, boolean inPlace) {
        CollectiveCall collective = Arrays.stream(CollectiveCall.values())
                .filter(each -> each.toString().equals(operation.label()))
                .findFirst()
                .orElseThrow();
        int parts = collective.parts(communicator.size());
        Reduction chosen =
                Reduction.values()[collective.reduces() ? Math.floorMod(reduction, Reduction.values().length) : 0];
        PerfCase line = new PerfCase(0, type, chosen, Math.max(parts, bytes / type.bytes() / parts * parts), 0, 1);
        PerfPlan plan = new PerfPlan(collective, communicator.size(), List.of(line), Checking.EVERY, seed,
                deadline.remaining());
        return new Measurement(plan, communicator, stream, memory, send, receive, deadline).check(line,
                inPlace && collective.hasInPlace());
    }

    /** Gives the registrations back, before the operands go. */
    @Override
    public void close() {
        registrations.forEach(Registration::close);
    }
}
