package org.millrace.engine;

import java.util.EnumMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.Operation;
import org.millrace.device.EmulatedDevice;
import org.millrace.device.EmulatedKernel;
import org.millrace.engine.Announcer.OperationId;
import org.millrace.engine.Announcer.TransferId;
import org.millrace.engine.PlannedOperation.PlannedCollective;
import org.millrace.engine.PlannedOperation.PlannedTransfer;
import org.millrace.engine.PlannedOperation.SendOrReceive;
import org.millrace.trace.TraceLayout.CommunicatorFields;
import org.millrace.trace.CommunicatorTrace;
import org.millrace.trace.ProcessTrace;

/**
 * Traces the operations that a communicator launches, each run of a plan separately. Ten times a second, the trace's
 * thread also records which kernels have begun and ended. Kernels do no work for the trace.
 */
final class OperationTrace implements AutoCloseable {

    private static final Map<Operation, CommunicatorTrace.TraceName> NAMES = new EnumMap<>(Operation.class);
    private static final CommunicatorTrace.TraceName SEND = CommunicatorTrace.TraceName.of("send");
    private static final CommunicatorTrace.TraceName RECEIVE = CommunicatorTrace.TraceName.of("receive");
    private static final int NONE = -1;
    /**
     * Initial capacity of the tables of observed kernels, a power of two. A kernel is observed until the trace has
     * recorded its end.
     */
    private static final int KERNELS = CommunicatorFields.OPERATIONS;
    /**
     * Maximum number of observed kernels. If more kernels are launched before the oldest of them ends, only the newest
     * kernels are observed.
     */
    private static final int MAX_KERNELS = 1 << 16;

    static {
        for (Operation operation : Operation.values()) {
            NAMES.put(operation, CommunicatorTrace.TraceName.of(operation.label()));
        }
    }

    private final @Nullable ProcessTrace process;
    private final @Nullable CommunicatorTrace trace;
    private final EmulatedDevice device;
    private final Runnable watcher = this::look;
    private @Nullable EmulatedKernel[] kernels = new EmulatedKernel[KERNELS];
    /**
     * Number of the first operation of each observed kernel. {@link #end} contains the number after the kernel's last
     * operation.
     */
    private long[] first = new long[KERNELS];
    private long[] end = new long[KERNELS];
    private long launched;
    /** Number of the oldest observed kernel. All kernels before it have ended, or are no longer observed. */
    private long oldest;
    /** Number that the trace will assign to the next operation. */
    private long next;

    /**
     * @param process trace of the process; null if tracing is off
     * @param trace   trace of the communicator; null if tracing is off
     */
    public OperationTrace(@Nullable ProcessTrace process, @Nullable CommunicatorTrace trace, EmulatedDevice device) {
        this.process = process;
        this.device = device;
        this.trace = trace;
        if (process != null && trace != null) {
            trace.reportKernels();
            process.watch(watcher);
        }
    }

    /** Records a collective that is about to be launched. */
    synchronized void collective(PlannedCollective planned, OperationId id) {
        if (trace != null) {
            Operation operation = id.operation();
            int root = operation.hasRoot() ? planned.asked().root() : NONE;
            next = 1 + trace.enqueued(NAMES.get(operation), id.number(), planned.asked().bytes(),
                    planned.asked().count(), planned.asked().type().code(), planned.work().channelHigh() + 1, NONE,
                    root);
        }
    }

    /** Records a send, a receive or both that are about to be launched. */
    synchronized void transfer(PlannedTransfer planned, TransferId id) {
        if (trace != null && planned.send() != null) {
            transfer(SEND, planned.send(), planned.work().sendChannels(), id.send());
        }
        if (trace != null && planned.receive() != null) {
            transfer(RECEIVE, planned.receive(), planned.work().receiveChannels(), id.receive());
        }
    }

    private void transfer(CommunicatorTrace.TraceName name, SendOrReceive half, int channels, long number) {
        next = 1 + trace.enqueued(name, number, half.bytes(), half.count(), half.type().code(), channels, half.peer(),
                NONE);
    }

    /** Records that {@code kernel} runs all operations that were recorded since the previous kernel. */
    synchronized void launched(EmulatedKernel kernel) {
        if (trace != null) {
            long begin = launched == 0 ? 0 : end[at(launched - 1)];
            if (launched - oldest == kernels.length) {
                makeRoom();
            }
            int at = at(launched);
            first[at] = begin;
            end[at] = next;
            kernels[at] = kernel;
            launched++;
            trace.launched();
        }
    }

    private int at(long number) {
        return (int) number & kernels.length - 1;
    }

    /**
     * Makes room in the tables for another kernel, because programs may launch thousands of kernels before the first of
     * them ends.
     */
    private void makeRoom() {
        long ended = 0;
        while (oldest < launched && kernels[at(oldest)].done()) {
            ended = end[at(oldest)];
            ran(at(oldest));
            kernels[at(oldest++)] = null;
        }
        if (launched - oldest < kernels.length) {
            trace.started(ended - 1); // each call also marks all earlier operations
            trace.ended(ended - 1);
            return;
        }
        if (kernels.length == MAX_KERNELS) {
            oldest++;
            return;
        }
        EmulatedKernel[] was = kernels;
        long[] begins = first;
        long[] ends = end;
        kernels = new EmulatedKernel[2 * was.length];
        first = new long[kernels.length];
        end = new long[kernels.length];
        for (long number = oldest; number < launched; number++) {
            int from = (int) number & was.length - 1;
            kernels[at(number)] = was[from];
            first[at(number)] = begins[from];
            end[at(number)] = ends[from];
        }
    }

    private void ran(int at) {
        if (trace.isRecorded()) {
            trace.ran(first[at], end[at], kernels[at].beganAt(), kernels[at].lastMoved());
        }
    }

    private synchronized void look() {
        trace.inFunction(device.functionSince());
        boolean allEnded = true;
        for (long number = oldest; number < launched; number++) {
            int at = at(number);
            EmulatedKernel kernel = kernels[at];
            boolean ended = kernel.done();
            for (long operation = first[at]; operation < end[at]; operation++) {
                if (ended || kernel.begun()) {
                    trace.started(operation);
                }
                if (ended) {
                    trace.ended(operation);
                }
            }
            allEnded &= ended;
            if (allEnded) {
                ran(at);
                kernels[at] = null;
                oldest = number + 1;
            }
        }
    }

    @Override
    public void close() {
        if (process != null) {
            process.unwatch(watcher);
        }
        if (trace != null && trace.isRecorded()) {
            look(); // records the kernels that have ended since the last call
        }
    }
}
