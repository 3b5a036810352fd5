package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;

/**
 * Gathers the slices of one connection, as one block's warps do: piece by piece, as its list says. Used by the block
 * alone.
 */
final class SliceGather {

    /** A GPU copies so many bytes at a time, and demands of buffers that they are aligned for it. */
    private static final int UNIT = 16;

    private final UnpackMeta meta;
    private final UnpackHandle handle;
    private final MemorySegment bounce;
    private final long threshold;
    private long head;

    SliceGather(UnpackHandle.UnpackMemory memory) {
        this.meta = UnpackMeta.of(memory.meta());
        this.handle = UnpackHandle.of(memory.handle());
        this.bounce = memory.bounce();
        this.threshold = memory.threshold();
        head = handle.headAcquire();
    }

    /**
     * The next slice, of 0 bytes or more, has arrived (tail covers it): its bytes are put together in its slot.
     *
     * @throws IllegalArgumentException if the bounce buffer or the slot is not aligned to 16 bytes
     */
    public void next(MemorySegment slots, long slot, long bytes) {
        head++;
        if (bytes == 0 || bytes < threshold) {
            return;
        }
        if (((bounce.address() | slots.address() + slot) & UNIT - 1) != 0) {
            throw new IllegalArgumentException(
                    "the bounce buffer and the slots of a connection must be aligned to " + UNIT + " bytes");
        }
        int slice = (int) head & UnpackMeta.SLICES - 1;
        // pairs with the proxy's release, and is behind the acquire of tail in any case
        long count = meta.countAcquire(slice);
        for (int piece = 0; piece < count; piece++) {
            MemorySegment.copy(bounce, Integer.toUnsignedLong(meta.sourceOffset(slice, piece)), slots,
                    slot + meta.targetOffset(slice, piece), Integer.toUnsignedLong(meta.length(slice, piece)));
        }
    }

    /** The operation has ended: the head is kept for the next one. */
    public void leave() {
        handle.headRelease(head);
    }
}
