package org.millrace.plugin;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Configuration;
import org.millrace.config.Settings.Events;
import org.millrace.config.Settings;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.plugin.host.NcclLog;
import org.millrace.trace.CommunicatorTrace;
import org.millrace.trace.ProcessTrace;

/**
 * Operations of NCCL's profiler tables that Java implements: the start and the end of a communicator. The shim itself
 * records the other events, in the communicator's block of this process's trace.
 */
final class ProfilerPlugin {

    private static final int OPERATIONS = plugin_h.ncclProfileColl() | plugin_h.ncclProfileP2p();
    private static final int KERNELS = plugin_h.ncclProfileKernelCh();

    private final UnaryOperator<@Nullable String> environment;
    private final Runnable operationComing;
    private final Map<Long, Open> open = new ConcurrentHashMap<>();

    /**
     * A communicator that NCCL has not finalized.
     *
     * @param pauses number of operations that followed a pause
     */
    private record Open(CommunicatorTrace trace, AtomicLong pauses) {
    }

    /**
     * Creates a profiler. The settings select the recorded events.
     *
     * @param operationComing action at the first operation after a pause; the operation's kernel may already be running
     */
    public ProfilerPlugin(UnaryOperator<@Nullable String> environment, Runnable operationComing) {
        this.environment = environment;
        this.operationComing = operationComing;
    }

    /**
     * Initializes a communicator.
     *
     * @param operations address at which this method stores the address of the communicator's memory for operations.
     *                   Nothing is stored if no events are recorded
     * @param mask       address at which this method stores the kinds of events that NCCL must report
     */
    public void profilerInit(long operations, long mask, long communicator, int nodes, int ranks, int rank) {
        Events wanted = Configuration.ofPlugin(environment).get(Settings.PROFILER);
        ProcessTrace trace = ProcessTrace.current();
        CommunicatorTrace made =
                wanted == Events.OFF || trace == null ? null : trace.communicator(communicator, rank, ranks, "");
        if (made == null) {
            return;
        }
        made.describe(rank, ranks, nodes, "");
        made.enqueuedByNativeCode();
        open.put(made.address(), new Open(made, new AtomicLong()));
        NativeMemory.putLong(operations, made.address());
        NativeMemory.putInt(mask, wanted == Events.KERNELS ? OPERATIONS | KERNELS : OPERATIONS);
    }

    /**
     * Records that NCCL launches an operation on a communicator after a pause between operations. Wakes the threads
     * that serve connections. For a collective, the tuner has already woken these threads. NCCL does not call the tuner
     * for sends and receives. When a graph is launched again, NCCL calls neither the tuner nor this method.
     */
    public void profilerPauseEnded(long operations) {
        Open communicator = open.get(operations);
        if (communicator != null) {
            communicator.pauses.incrementAndGet();
            operationComing.run();
        }
    }

    /**
     * Finalizes a communicator.
     *
     * @param events address of two numbers for each kind of event: the number of begun events, and the number of ended
     *               events
     */
    public void profilerFinalize(long operations, long events) {
        Open ended = open.remove(operations);
        if (ended != null) {
            ended.trace.close();
            NcclLog.info("profiler: " + words("collectives", events) + ", " + words("sends and receives", events + 16)
                    + ", " + words("blocks of kernels", events + 32) + "; operations after a pause: " + ended.pauses);
        }
    }

    private static String words(String kind, long counts) {
        return NativeMemory.getLong(counts) + " " + kind + ", of which " + NativeMemory.getLong(counts + Long.BYTES)
                + " have ended";
    }
}
