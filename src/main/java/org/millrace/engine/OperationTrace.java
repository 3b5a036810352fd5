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
 * Traces what a communicator launches, each run of a plan anew, and, ten times a second, whose kernels have begun and
 * ended meanwhile: kernels do nothing for it.
 */
final class OperationTrace implements AutoCloseable {

    private static final Map<Operation, CommunicatorTrace.TraceName> NAMES = new EnumMap<>(Operation.class);
    private static final CommunicatorTrace.TraceName SEND = CommunicatorTrace.TraceName.of("send");
    private static final CommunicatorTrace.TraceName RECEIVE = CommunicatorTrace.TraceName.of("receive");
    private static final int NONE = -1;
    /** Kernels that are looked at, at first; a power of two. */
    private static final int KERNELS = CommunicatorFields.OPERATIONS;
    /** The most kernels that are looked at: of what is further ahead the newest are. */
    private static final int MOST_KERNELS = 1 << 16;

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
    /** The first operation of each of these kernels, and the first of the next. */
    private long[] first = new long[KERNELS];
    private long[] end = new long[KERNELS];
    private long launched;
    /** All before it have ended, or are no longer looked at. */
    private long oldest;
    /** What the next operation will be called by the trace. */
    private long next;

    /**
     * @param process null if nothing is traced
     * @param trace   null if nothing is traced
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

    /** A collective is about to be launched. */
    synchronized void collective(PlannedCollective planned, OperationId id) {
        if (trace != null) {
            Operation operation = id.operation();
            int root = operation.hasRoot() ? planned.asked().root() : NONE;
            next = 1 + trace.enqueued(NAMES.get(operation), id.number(), planned.asked().bytes(),
                    planned.asked().count(), planned.asked().type().code(), planned.work().channelHigh() + 1, NONE,
                    root);
        }
    }

    /** A send, a receive or both are about to be launched. */
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

    /** All that was not launched yet is, by this kernel. */
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

    /** Programs launch thousands ahead, and what runs is the oldest. */
    private void makeRoom() {
        long ended = 0;
        while (oldest < launched && kernels[at(oldest)].done()) {
            ended = end[at(oldest)];
            ran(at(oldest));
            kernels[at(oldest++)] = null;
        }
        if (launched - oldest < kernels.length) {
            trace.started(ended - 1); // and all before it
            trace.ended(ended - 1);
            return;
        }
        if (kernels.length == MOST_KERNELS) {
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
            look(); // at what has ended since
        }
    }
}
