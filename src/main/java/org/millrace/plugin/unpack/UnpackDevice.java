package org.millrace.plugin.unpack;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.PinnedMemory;
import org.millrace.net.Network;
import org.millrace.plugin.shim.NativeMemory;

/**
 * The memory that the plugin and unpacking kernels share: one bounce buffer, and for each receiving connection its
 * lists and its handle. It is host memory that the GPU has mapped. Safe from any thread.
 */
public final class UnpackDevice implements AutoCloseable {

    private static final long ALIGNMENT = 4096;

    private final boolean onHost;
    private final long bounceBytes;
    private final Arena arena = Arena.ofShared();
    private @Nullable BounceBuffer bounce;
    private long bounceAddress;

    /**
     * Nothing is taken before the first connection.
     *
     * @param onHost whether the CPU plays the kernels
     */
    public UnpackDevice(boolean onHost, long bounceBytes) {
        this.onHost = onHost;
        this.bounceBytes = bounceBytes;
    }

    /**
     * Memory of both sides.
     *
     * @param host   as Java sees it, of the global scope
     * @param device its address as kernels see it
     */
    record Shared(MemorySegment host, long device) {
    }

    /** Zeroed memory of the device that is current on the calling thread, or of the host. */
    Shared share(long bytes, Arena owner) {
        if (onHost) {
            long address = owner.allocate(bytes, ALIGNMENT).address();
            return new Shared(NativeMemory.at(address, bytes), address);
        }
        CudaRuntime runtime = CudaRuntime.load();
        CudaDevice device = runtime.device(runtime.currentDevice());
        PinnedMemory pinned =
                PinnedMemory.allocate(device, bytes, owner, PinnedMemory.Flag.PORTABLE, PinnedMemory.Flag.MAPPED);
        return new Shared(NativeMemory.at(pinned.host().address(), bytes), pinned.device().address());
    }

    /**
     * A new receiving connection's memory.
     *
     * @param needsProxyProgress whether NCCL's proxy asks for progress
     */
    public synchronized UnpackConnection connection(Network network, boolean needsProxyProgress) {
        if (bounce == null) {
            Shared shared = share(bounceBytes, arena);
            bounce = new BounceBuffer(network.register(shared.host()));
            bounceAddress = shared.device();
        }
        return new UnpackConnection(this, bounce, bounceAddress, needsProxyProgress);
    }

    /** Connections were closed before. */
    @Override
    public synchronized void close() {
        if (bounce != null) {
            bounce.close();
            bounce = null;
        }
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }

    @Override
    public String toString() {
        return "kernels unpack from a bounce buffer of " + (bounceBytes >> 20) + " MiB"
                + (onHost ? ", on the host" : "");
    }
}
