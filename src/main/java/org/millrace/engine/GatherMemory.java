package org.millrace.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.proxy.BouncePages;
import org.millrace.proxy.GatheredSlices;
import org.millrace.proxy.SliceLists;

/** A receiving connection's bounce buffer, lists and handle, for a device that gathers what it receives. */
final class GatherMemory implements AutoCloseable {

    private static final long LINE = 128;

    private final MemorySegment meta;
    private final MemorySegment handle;
    private final MemoryRegion bounce;
    private final long slotBytes;
    private final long threshold;

    /** @param arena the connection's */
    GatherMemory(Arena arena, Network network, long slotBytes, long threshold) {
        this.slotBytes = slotBytes;
        this.threshold = threshold;
        meta = ConnectionInfo.unscoped(arena.allocate(UnpackMeta.BYTES, LINE));
        handle = ConnectionInfo.unscoped(arena.allocate(UnpackHandle.BYTES, LINE));
        bounce = network.register(ConnectionInfo.unscoped(
                arena.allocate((long) BouncePages.needed(slotBytes) * BouncePages.PAGE_BYTES, BouncePages.PAGE_BYTES)));
        UnpackHandle.of(handle).set(meta.address(), bounce.segment().address(), UnpackHandle.BEFORE_FIRST);
    }

    /** What the device knows of it. */
    UnpackHandle.UnpackMemory device() {
        return new UnpackHandle.UnpackMemory(meta, handle, bounce.segment(), threshold);
    }

    GatheredSlices slices() {
        int[] offsets = new int[BouncePages.needed(slotBytes)];
        for (int page = 0; page < offsets.length; page++) {
            offsets[page] = page * BouncePages.PAGE_BYTES;
        }
        return new GatheredSlices(new BouncePages(bounce, offsets, slotBytes),
                new SliceLists(meta, handle, bounce.segment().byteSize(), UnpackHandle.BEFORE_FIRST + 1), threshold);
    }

    /** May be called twice. */
    @Override
    public void close() {
        bounce.close();
    }
}
