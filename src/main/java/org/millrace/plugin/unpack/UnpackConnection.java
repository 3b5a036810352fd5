package org.millrace.plugin.unpack;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.NetDeviceHandle;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;
import org.millrace.proxy.unpack.SliceLists;
import org.millrace.proxy.unpack.UnpackMemory;

/**
 * What a receiving connection shares with kernels that unpack: its lists and its handle from the beginning, its pages
 * when its slots are known.
 */
public final class UnpackConnection implements AutoCloseable {

    /** The version of NCCL's kernels that unpack. */
    public static final int VERSION = 7;

    /** On a line of its own: the kernel writes it. */
    private static final long HANDLE_OFFSET = (UnpackMeta.BYTES + 127) & -128;
    private static final long FIRST_ORDINAL = UnpackHandle.BEFORE_FIRST + 1;

    private final Arena arena = Arena.ofShared();
    private final BounceBuffer bounce;
    private final MemorySegment netHandle;
    private final SliceLists lists;
    private BounceBuffer.@Nullable Allocation allocation;

    UnpackConnection(UnpackDevice device, BounceBuffer bounce, long bounceAddress, boolean needsProxyProgress) {
        this.bounce = bounce;
        UnpackDevice.Shared shared = device.share(HANDLE_OFFSET + UnpackHandle.BYTES, arena);
        MemorySegment meta = shared.host().asSlice(0, UnpackMeta.BYTES);
        MemorySegment handle = shared.host().asSlice(HANDLE_OFFSET, UnpackHandle.BYTES);
        UnpackHandle.of(handle).set(shared.device(), bounceAddress, UnpackHandle.BEFORE_FIRST);
        netHandle = arena.allocate(NetDeviceHandle.BYTES, NetDeviceHandle.ALIGNMENT);
        NetDeviceHandle.of(netHandle)
                .set(NetDeviceHandle.UNPACK, VERSION, shared.device() + HANDLE_OFFSET, UnpackHandle.BYTES,
                        needsProxyProgress);
        lists = new SliceLists(meta, handle, bounce.bytes(), FIRST_ORDINAL);
    }

    /** Where the {@code ncclNetDeviceHandle_t} is. */
    public long deviceHandle() {
        return netHandle.address();
    }

    /**
     * Takes pages for slots; to be called once.
     *
     * @param scattered whether the connection's network can fill pages that do not lie behind one another
     */
    public UnpackMemory prepare(long slotBytes, boolean scattered) {
        BounceBuffer.Allocation allocation = bounce.allocate(slotBytes, scattered);
        this.allocation = allocation;
        return new UnpackMemory(allocation.pages(), lists, FIRST_ORDINAL);
    }

    /** No proxy uses it any more, and no kernel. */
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
