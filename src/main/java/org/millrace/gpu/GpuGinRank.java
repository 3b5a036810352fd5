package org.millrace.gpu;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.millrace.CommunicatorListener;
import org.millrace.MillraceException;
import org.millrace.config.Configuration;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.DeviceMemory;
import org.millrace.gin.GinServed;
import org.millrace.nccl.NcclDeviceCommunicator;
import org.millrace.nccl.NcclLibrary;
import org.millrace.nccl.NcclWindow;
import org.millrace.plugin.InProcessPlugin;

/**
 * One rank of GIN on GPUs: its GPU, windows, and the device communicators that its kernels are given. NCCL's device
 * functions post to queues that this JVM serves, by {@link org.millrace.plugin.InProcessPlugin}. What other ranks take
 * part in is bounded by {@code MILLRACE_CONNECT_DEADLINE}. One thread uses it.
 */
public final class GpuGinRank implements AutoCloseable {

    private static final long PAGE = 4096;

    /** Memory of this GPU that kernels of all ranks put to and from. */
    public record GpuWindow(DeviceMemory memory, NcclWindow window) {
    }

    private final GpuRank member;
    private final List<GpuWindow> windows = new ArrayList<>();
    private final List<NcclDeviceCommunicator> devices = new ArrayList<>();
    private final AtomicBoolean closed = new AtomicBoolean();
    private volatile boolean failed;

    private GpuGinRank(GpuRank member) {
        this.member = member;
    }

    /**
     * Joins the other ranks.
     *
     * @param rendezvous where they meet, as for {@link org.millrace.Millrace#join}
     * @throws MillraceException if CUDA or NCCL cannot be used, or a rank does not come
     */
    public static GpuGinRank join(String rendezvous, int rank, int size, Map<String, String> settings) {
        Configuration configuration = Configuration.load(settings);
        return new GpuGinRank(GpuRank.meet(GpuRank.prepare(configuration), rendezvous, rank, size, configuration,
                CommunicatorListener.STANDARD_ERROR));
    }

    public CudaDevice device() {
        return member.device();
    }

    /** The CUDA runtime, for modules. */
    public CudaRuntime cuda() {
        return member.libraries().cuda();
    }

    /** The loaded NCCL. */
    public NcclLibrary nccl() {
        return member.libraries().nccl();
    }

    /**
     * Takes memory and registers it as a window, with all ranks.
     *
     * @param bytes how much, rounded up to whole pages; the same on all ranks
     */
    public GpuWindow window(long bytes) {
        DeviceMemory memory = nccl().allocate(device(), (bytes + PAGE - 1) / PAGE * PAGE);
        try {
            NcclWindow window = member.bounded("ncclCommWindowRegister",
                    () -> member.nccl().registerWindow(memory.segment(), true));
            GpuWindow both = new GpuWindow(memory, window);
            windows.add(both);
            if (window.address() == 0) {
                throw new MillraceException("NCCL has no windows for this machine's memory:"
                        + " GIN needs cuMem allocations (NCCL_CUMEM_ENABLE=1, which is the default where the driver"
                        + " can)" + " and a GPU of compute capability 7.0 or more");
            }
            return both;
        } catch (RuntimeException | Error thrown) {
            fail(thrown);
            throw thrown;
        }
    }

    /**
     * Makes a device communicator, with all ranks.
     *
     * @param compiledWith {@code NCCL_VERSION_CODE} of the headers with which they were compiled
     */
    public NcclDeviceCommunicator device(NcclDeviceCommunicator.Requirements requirements, int compiledWith) {
        try {
            NcclDeviceCommunicator device = member.bounded("ncclDevCommCreate",
                    () -> member.nccl().newDeviceCommunicator(requirements, compiledWith));
            devices.add(device);
            if (device.contexts() == 0) {
                throw new MillraceException("NCCL made no GIN contexts: it found no network that has GIN"
                        + " (NCCL_DEBUG=INFO shows which it took; NCCL_NET_PLUGIN, if set, must name Millrace's)");
            }
            return device;
        } catch (RuntimeException | Error thrown) {
            fail(thrown);
            throw thrown;
        }
    }

    /**
     * {@return what this JVM has served of kernels' descriptors, summed over all contexts; nothing if another process's
     * plugin serves them}
     */
    public GinServed served() {
        return InProcessPlugin.ginServed();
    }

    /** Throws what another rank, or a connection, failed of. */
    public void throwIfFailed() {
        member.failure().watch();
        member.failure().throwIfFailed();
    }

    /** Tells the other ranks that this one gives up. */
    public void fail(Throwable why) {
        failed = true;
        member.failure().fail(why);
    }

    /**
     * Gives everything back and leaves. Kernels must have ended, unless this rank has failed: then what NCCL holds is
     * left to the end of the process, because giving it back would wait for kernels that may never end. Closing twice
     * is allowed.
     */
    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        try {
            if (failed) {
                return;
            }
            member.bounded("ncclCommDestroy", () -> {
                devices.forEach(NcclDeviceCommunicator::close);
                windows.forEach(both -> {
                    both.window().close();
                    both.memory().close();
                });
                member.nccl().close();
                return null;
            });
        } finally {
            member.control().close();
        }
    }
}
