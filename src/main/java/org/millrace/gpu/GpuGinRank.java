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
 * One rank of GIN on GPUs: its GPU, its windows, and the device communicators for its kernels. Kernels post descriptors
 * to queues through NCCL's device functions. This JVM serves the queues through
 * {@link org.millrace.plugin.InProcessPlugin}. The setting {@code MILLRACE_CONNECT_DEADLINE} limits the duration of
 * calls that involve other ranks. Used by one thread.
 */
public final class GpuGinRank implements AutoCloseable {

    private static final long PAGE = 4096;

    /** Memory of this rank's GPU that is registered as a window, so that kernels of all ranks can use it in puts. */
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
     * @param rendezvous address of the rendezvous, as for {@link org.millrace.Millrace#join}
     * @throws MillraceException if CUDA or NCCL cannot be used, or if a rank does not join before the deadline
     */
    public static GpuGinRank join(String rendezvous, int rank, int size, Map<String, String> settings) {
        Configuration configuration = Configuration.load(settings);
        return new GpuGinRank(GpuRank.meet(GpuRank.prepare(configuration), rendezvous, rank, size, configuration,
                CommunicatorListener.STANDARD_ERROR));
    }

    public CudaDevice device() {
        return member.device();
    }

    /** Returns the CUDA runtime, by which the program loads its kernels. */
    public CudaRuntime cuda() {
        return member.libraries().cuda();
    }

    /** Returns the loaded NCCL library. */
    public NcclLibrary nccl() {
        return member.libraries().nccl();
    }

    /**
     * Allocates device memory and registers it as a window. All ranks must call this method.
     *
     * @param bytes size of the window, rounded up to whole pages of 4096 bytes; the same on all ranks
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
     * Creates a device communicator for kernels. All ranks must call this method.
     *
     * @param compiledWith {@code NCCL_VERSION_CODE} of the kernels' headers
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
     * {@return the counts of the descriptors that kernels posted and this JVM has served, summed over all contexts; all
     * 0 if the plugin of another process serves them}
     */
    public GinServed served() {
        return InProcessPlugin.ginServed();
    }

    /** Throws the failure of another rank or of a connection. Returns if there was no failure. */
    public void throwIfFailed() {
        member.failure().watch();
        member.failure().throwIfFailed();
    }

    /** Reports to the other ranks that this rank has failed. */
    public void fail(Throwable why) {
        failed = true;
        member.failure().fail(why);
    }

    /**
     * Frees all resources and leaves the group of ranks. All kernels must have ended, unless this rank has failed.
     * After a failure, NCCL's resources stay allocated until the process ends. Freeing them would wait for kernels that
     * may never end. May be called twice.
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
