package org.millrace.engine.plan;

import java.util.EnumMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.Operation;
import org.millrace.device.stream.EmulatedDevice;
import org.millrace.device.stream.EmulatedKernel;
import org.millrace.engine.plan.Announcer.OperationId;
import org.millrace.engine.plan.Announcer.TransferId;
import org.millrace.engine.plan.PlannedOperation.PlannedCollective;
import org.millrace.engine.plan.PlannedOperation.PlannedTransfer;
import org.millrace.engine.plan.PlannedOperation.SendOrReceive;
import org.millrace.proxy.OperationSignature;
import org.millrace.trace.CommunicatorFields;
import org.millrace.trace.CommunicatorTrace;
import org.millrace.trace.ProcessTrace;
import org.millrace.trace.TraceName;

/**
 * Writes down what a communicator launches, each run of a plan anew, and, ten times a second, whose kernels have begun
 * and ended meanwhile: kernels do nothing for it.
 */
public final class OperationTrace implements AutoCloseable {

    private static final Map<Operation, TraceName> NAMES = new EnumMap<>(Operation.class);
    private static final TraceName SEND = TraceName.of("send");
    private static final TraceName RECEIVE = TraceName.of("receive");
    private static final int NONE = -1;
    /** Kernels that are looked at; a power of two. Each has an operation, and no more operations are remembered. */
    private static final int KERNELS = CommunicatorFields.OPERATIONS;

    static {
        for (Operation operation : Operation.values()) {
            NAMES.put(operation, TraceName.of(operation.label()));
        }
    }

    private final @Nullable ProcessTrace process;
    private final @Nullable CommunicatorTrace trace;
    private final EmulatedDevice device;
    private final Runnable watcher = this::look;
    private final @Nullable EmulatedKernel[] kernels = new EmulatedKernel[KERNELS];
    /** The first operation of each of these kernels, and the first of the next. */
    private final long[] first = new long[KERNELS];
    private final long[] end = new long[KERNELS];
    private long launched;
    /** All before it have ended, or are no longer looked at. */
    private long oldest;
    /** What the next operation will be called by the trace. */
    private long next;

    /**
     * @param process null if nothing is written down
     * @param trace   null if nothing is written down
     * @param device  runs the kernels
     */
    public OperationTrace(@Nullable ProcessTrace process, @Nullable CommunicatorTrace trace, EmulatedDevice device) {
        this.process = process;
        this.device = device;
        this.trace = trace;
        if (process != null && trace != null) {
            trace.tellsKernels();
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

    private void transfer(TraceName name, SendOrReceive half, int channels, long number) {
        next = 1 + trace.enqueued(name, number, half.bytes(), half.count(), half.type().code(), channels, half.peer(),
                NONE);
    }

    /** All that was not launched yet is, by this kernel. */
    synchronized void launched(EmulatedKernel kernel) {
        if (trace != null) {
            int at = (int) launched & KERNELS - 1;
            first[at] = launched == 0 ? 0 : end[(int) (launched - 1) & KERNELS - 1];
            end[at] = next;
            kernels[at] = kernel;
            launched++;
            oldest = Math.max(oldest, launched - KERNELS);
        }
    }

    private synchronized void look() {
        trace.inFunction(device.functionSince());
        boolean allEnded = true;
        for (long number = oldest; number < launched; number++) {
            int at = (int) number & KERNELS - 1;
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
    }
}
