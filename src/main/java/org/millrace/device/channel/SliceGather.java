package org.millrace.device.channel;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMemory;
import org.millrace.abi.UnpackMeta;

/**
 * Gathers the slices of one connection, as the warps of one block do. Warps take turns of a few pieces each; here they
 * follow one another. Used by the block alone.
 */
public final class SliceGather {

    private static final int PAGE_BYTES = 4096;
    /** Pieces that a warp's part of a GPU's shared memory has room for. */
    private static final int MOST_PER_WARP = 4;

    private final UnpackMeta meta;
    private final UnpackHandle handle;
    private final MemorySegment bounce;
    private final int warps;
    private final long threshold;
    private long head;

    /** Begins where the handle says; {@code warps} are those of the block. */
    SliceGather(MemorySegment meta, MemorySegment handle, MemorySegment bounce, int warps) {
        this(new UnpackMemory(meta, handle, bounce, 0), warps);
    }

    /** Begins where the handle says; {@code warps} are those of the block. */
    SliceGather(UnpackMemory memory, int warps) {
        this.meta = UnpackMeta.of(memory.meta());
        this.handle = UnpackHandle.of(memory.handle());
        this.bounce = memory.bounce();
        this.threshold = memory.threshold();
        this.warps = warps;
        enter();
    }

    /** An operation begins: the head is where the one before left it. */
    public void enter() {
        head = this.handle.headAcquire();
    }

    /** The next slice, of 0 bytes or more, has arrived (tail covers it): its bytes are put together in its slot. */
    public void next(MemorySegment slots, long slot, long bytes) {
        head++;
        if (bytes == 0 || bytes < threshold) {
            return;
        }
        int slice = (int) head & UnpackMeta.SLICES - 1;
        long count = meta.countAcquire(slice); // pairs with the proxy's release, and is behind the acquire of tail in
                                               // any case
        int turn = piecesPerTurn(bytes, warps);
        for (int warp = 0; warp < warps; warp++) {
            for (long first = (long) warp * turn; first < count; first += (long) warps * turn) {
                long end = Math.min(first + turn, count);
                for (int piece = (int) first; piece < end; piece++) {
                    PieceCopy.copy(bounce, meta.sourceOffset(slice, piece), slots, slot,
                            meta.targetOffset(slice, piece), Integer.toUnsignedLong(meta.length(slice, piece)));
                }
            }
        }
    }

    /** How many pieces a warp takes at once: its share of a slice in pages, halved until it fits. */
    static int piecesPerTurn(long bytes, int warps) {
        long pages = (bytes + PAGE_BYTES - 1) / PAGE_BYTES;
        long turn = (pages + warps - 1) / warps;
        while (turn > MOST_PER_WARP) {
            turn = (turn + 1) / 2;
        }
        return (int) turn;
    }

    /** The operation has ended: the head is kept for the next one. */
    public void leave() {
        handle.headRelease(head);
    }

    /**
     * One warp's copy of one piece: 16 bytes at a time, in loads as wide as the offsets of both sides allow, then what
     * is left of 16 bytes one by one. Loads are aligned, as a GPU demands it: {@link IllegalArgumentException} if
     * buffer and slot are not aligned to 16 bytes.
     */
    static final class PieceCopy {

        private static final int UNIT = 16;

        private PieceCopy() {}

        /** The widest load for offsets: 1, 2, 4, 8 or 16 bytes. */
        static int width(int source, long target) {
            long common = (Integer.toUnsignedLong(source) | target) % UNIT;
            return common == 0 ? UNIT : (int) Long.lowestOneBit(common);
        }

        static void copy(MemorySegment bounce, int source, MemorySegment slots, long slot, long target, long length) {
            long from = Integer.toUnsignedLong(source);
            long to = slot + target;
            long whole = length / UNIT * UNIT;
            switch (width(source, target)) {
                case 16, 8 -> {
                    for (long at = 0; at < whole; at += Long.BYTES) {
                        slots.set(ValueLayout.JAVA_LONG, to + at, bounce.get(ValueLayout.JAVA_LONG, from + at));
                    }
                }
                case 4 -> {
                    for (long at = 0; at < whole; at += Integer.BYTES) {
                        slots.set(ValueLayout.JAVA_INT, to + at, bounce.get(ValueLayout.JAVA_INT, from + at));
                    }
                }
                case 2 -> {
                    for (long at = 0; at < whole; at += Short.BYTES) {
                        slots.set(ValueLayout.JAVA_SHORT, to + at, bounce.get(ValueLayout.JAVA_SHORT, from + at));
                    }
                }
                default -> bytes(bounce, from, slots, to, 0, whole);
            }
            bytes(bounce, from, slots, to, whole, length);
        }

        private static void bytes(MemorySegment bounce, long from, MemorySegment slots, long to, long begin, long end) {
            for (long at = begin; at < end; at++) {
                slots.set(ValueLayout.JAVA_BYTE, to + at, bounce.get(ValueLayout.JAVA_BYTE, from + at));
            }
        }
    }
}
