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
import org.millrace.trace.CommunicatorTrace;
import org.millrace.trace.ProcessTrace;

/**
 * The operations of NCCL's profiler tables that are Java's: a communicator begins, and ends. What happens between the
 * shim writes down, in the communicator's block of this process's trace.
 */
final class ProfilerPlugin {

    private static final int OPERATIONS = plugin_h.ncclProfileColl() | plugin_h.ncclProfileP2p();
    private static final int KERNELS = plugin_h.ncclProfileKernelCh();

    private final UnaryOperator<@Nullable String> environment;
    private final Runnable operationComing;
    private final Map<Long, Open> open = new ConcurrentHashMap<>();

    /**
     * A communicator that has not ended.
     *
     * @param pauses how many have ended
     */
    private record Open(CommunicatorTrace trace, AtomicLong pauses) {
    }

    /**
     * A profiler that keeps what the settings say.
     *
     * @param operationComing is told of the first operation after a pause, whose kernel may be running by then
     */
    public ProfilerPlugin(UnaryOperator<@Nullable String> environment, Runnable operationComing) {
        this.environment = environment;
        this.operationComing = operationComing;
    }

    /**
     * NCCL makes a communicator.
     *
     * @param operations where the address is written to of the memory for its operations; 0 for no events
     * @param mask       where the kinds of events are written to that NCCL is to tell of
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
     * NCCL launches an operation on a communicator that had none for a while. The tuner is asked about collectives
     * sooner, and never about sends, receives, and what a graph launches again.
     */
    public void profilerPauseEnded(long operations) {
        Open communicator = open.get(operations);
        if (communicator != null) {
            communicator.pauses.incrementAndGet();
            operationComing.run();
        }
    }

    /**
     * NCCL has ended a communicator.
     *
     * @param events address of how many events of each kind were begun, and how many ended, in turns
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
