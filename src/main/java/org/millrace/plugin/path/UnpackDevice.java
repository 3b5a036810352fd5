package org.millrace.plugin.path;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.NetDeviceHandle;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;
import org.millrace.config.Settings;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.PinnedMemory;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.proxy.BouncePages;
import org.millrace.proxy.SliceLists;
import org.millrace.proxy.UnpackReceiveSource;

/**
 * Memory that the plugin and unpacking kernels share. The memory is host memory that the GPU has mapped. It consists of
 * one bounce buffer, and of lists of pages and a handle for each receiving connection. Safe from any thread.
 */
public final class UnpackDevice implements AutoCloseable {

    private static final long ALIGNMENT = 4096;

    private final boolean onHost;
    private final long bounceBytes;
    private final Arena arena = Arena.ofShared();
    private @Nullable BounceBuffer bounce;
    private long bounceAddress;

    /**
     * Creates an object that allocates its memory with the first connection.
     *
     * @param onHost whether kernels are emulated
     */
    public UnpackDevice(boolean onHost, long bounceBytes) {
        this.onHost = onHost;
        this.bounceBytes = bounceBytes;
    }

    /**
     * Memory that the plugin and kernels access.
     *
     * @param host   segment of the global scope that represents the memory in Java
     * @param device address of the memory for kernels
     */
    record Shared(MemorySegment host, long device) {
    }

    /** Allocates zeroed host memory. If kernels run on a GPU, the calling thread's current device maps the memory. */
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
     * Creates the memory of a new receiving connection.
     *
     * @param needsProxyProgress whether NCCL's proxy must progress the connection
     */
    public synchronized Connection connection(Network network, boolean needsProxyProgress) {
        if (bounce == null) {
            Shared shared = share(bounceBytes, arena);
            bounce = new BounceBuffer(network.register(shared.host()));
            bounceAddress = shared.device();
        }
        return new Connection(this, bounce, bounceAddress, needsProxyProgress);
    }

    /** Frees the memory. Requires that all connections are closed. */
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

    /**
     * The bounce buffer, with pages that receive the data of all connections of this process. A process has only one
     * bounce buffer, because a kernel has a single buffer address for all its connections. Each connection has its own
     * pages and never waits for another connection's pages. Safe from any thread.
     */
    static final class BounceBuffer {

        private final MemoryRegion region;
        private final BitSet used = new BitSet();
        private final int pages;

        BounceBuffer(MemoryRegion region) {
            this.region = region;
            this.pages = Math.toIntExact(region.segment().byteSize() / BouncePages.PAGE_BYTES);
        }

        long bytes() {
            return region.segment().byteSize();
        }

        /** Allocates consecutive pages for a connection's slots. */
        synchronized Allocation allocate(long slotBytes) {
            int count = BouncePages.needed(slotBytes);
            int first = used.nextClearBit(0);
            for (int end = used.nextSetBit(first); end >= 0 && end - first < count; end = used.nextSetBit(first)) {
                first = used.nextClearBit(end);
            }
            if (count > pages - first) {
                throw new MillraceException("the bounce buffer of " + (bytes() >> 20) + " MiB has no room for "
                        + ((long) count * BouncePages.PAGE_BYTES >> 20) + " MiB of another connection; set "
                        + Settings.UNPACK_MIB.name() + " to more, or NCCL_BUFFSIZE to less");
            }
            used.set(first, first + count);
            int[] offsets = new int[count];
            for (int i = 0; i < count; i++) {
                offsets[i] = (int) ((long) (first + i) * BouncePages.PAGE_BYTES);
            }
            return new Allocation(first, count, new BouncePages(region, offsets, slotBytes));
        }

        synchronized void free(Allocation of) {
            used.clear(of.first, of.first + of.count);
        }

        void close() {
            region.close();
        }

        record Allocation(int first, int count, BouncePages pages) {
        }
    }

    /**
     * Memory that a receiving connection shares with kernels that unpack. The lists and the handle are allocated when
     * this object is created. The pages are allocated when the size of the slots is known.
     */
    public static final class Connection implements AutoCloseable {

        /** Version number of NCCL's unpack device, which NCCL compares with the version of its kernels. */
        public static final int VERSION = 7;

        /** Offset of the handle. The handle has its own cache line, because the kernel writes to it. */
        private static final long HANDLE_OFFSET = (UnpackMeta.BYTES + 127) & -128;
        private static final long FIRST_ORDINAL = UnpackHandle.BEFORE_FIRST + 1;

        private final Arena arena = Arena.ofShared();
        private final BounceBuffer bounce;
        private final MemorySegment netHandle;
        private final SliceLists lists;
        private BounceBuffer.@Nullable Allocation allocation;

        Connection(UnpackDevice device, BounceBuffer bounce, long bounceAddress, boolean needsProxyProgress) {
            this.bounce = bounce;
            Shared shared = device.share(HANDLE_OFFSET + UnpackHandle.BYTES, arena);
            MemorySegment meta = shared.host().asSlice(0, UnpackMeta.BYTES);
            MemorySegment handle = shared.host().asSlice(HANDLE_OFFSET, UnpackHandle.BYTES);
            UnpackHandle.of(handle).set(shared.device(), bounceAddress, UnpackHandle.BEFORE_FIRST);
            netHandle = arena.allocate(NetDeviceHandle.BYTES, NetDeviceHandle.ALIGNMENT);
            NetDeviceHandle.of(netHandle)
                    .set(NetDeviceHandle.UNPACK, VERSION, shared.device() + HANDLE_OFFSET, UnpackHandle.BYTES,
                            needsProxyProgress);
            lists = new SliceLists(meta, handle, bounce.bytes(), FIRST_ORDINAL);
        }

        public long deviceHandle() {
            return netHandle.address();
        }

        /** Allocates pages for slots. Call it once. */
        public UnpackReceiveSource.UnpackMemory prepare(long slotBytes) {
            allocation = bounce.allocate(slotBytes);
            return new UnpackReceiveSource.UnpackMemory(allocation.pages(), lists, FIRST_ORDINAL);
        }

        /** Frees the memory. Requires that no proxy and no kernel uses the memory any longer. */
        @Override
        public void close() {
            if (allocation != null) {
                bounce.free(allocation);
                allocation = null;
            }
            if (arena.scope().isAlive()) {
                arena.close();
            }
        }
    }
}
