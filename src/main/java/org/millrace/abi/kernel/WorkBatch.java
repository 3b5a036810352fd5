package org.millrace.abi.kernel;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevWorkBatch;
import org.millrace.foreign.Words;

/**
 * {@code ncclDevWorkBatch}: a set of a channel's work items. All items of the set have the same type, and the same
 * function executes them.
 *
 * <pre>
 *    0                                    4              8                      16
 *    +------------------------------------+--------------+-----------------------+
 *    | nextJump:14 extends:1 type:2 fn:15 | offsetBase   | offsetBitset          |
 *    +------------------------------------+--------------+-----------------------+
 *      u32, from bit 0 up                   u32            u64
 * </pre>
 *
 * <p>
 * The batches follow the {@linkplain KernelArguments kernel's arguments} in memory. The first batch of block {@code b}
 * has number {@code b}, and {@code nextJump} is the distance to the next batch of the same block. Bit {@code i} of
 * {@code offsetBitset} indicates that an item lies at {@code offsetBase + i * itemBytes}. If {@code extends} is set,
 * the items of the next batch also belong to this batch.
 *
 * <p>
 * The host writes the batches before it launches the kernel, and the kernel only reads them. All accesses are plain,
 * because the launch orders them. Facts: NCCL 2.28 {@code device.h}, {@code enqueue.cc}, {@code device/common.h}.
 */
public final class WorkBatch {
    public static final int BYTES = (int) ncclDevWorkBatch.sizeof();
    /** Maximum size of the items of a batch in bytes, including the items of all batches that extend it. */
    public static final int MAX_ITEM_BYTES = device_h.NCCL_MAX_DEV_WORK_BATCH_BYTES();
    /** Maximum number of point-to-point items of a batch, including the items of all batches that extend it. */
    public static final int MAX_POINT_TO_POINT = device_h.NCCL_MAX_DEV_WORK_P2P_PER_BATCH();
    /** Number of bits of {@code offsetBitset}. */
    public static final int MAX_ITEMS = Long.SIZE;
    /** Largest function number. */
    public static final int MAX_FUNCTION = mask(device_h.MILLRACE_BATCH_FUNC_ID_BITS());
    /** Maximum distance to the next batch, in batches. */
    public static final int MAX_JUMP = mask(device_h.MILLRACE_BATCH_NEXT_JUMP_BITS());

    private static final int EXTENDS = device_h.MILLRACE_BATCH_NEXT_EXTENDS();
    private static final int TYPE_SHIFT = device_h.MILLRACE_BATCH_WORK_TYPE_SHIFT();
    private static final int TYPE_MASK = mask(device_h.MILLRACE_BATCH_WORK_TYPE_BITS());
    private static final int FUNCTION_SHIFT = device_h.MILLRACE_BATCH_FUNC_ID_SHIFT();
    private static final long FLAGS = offset("flags");
    private static final long OFFSET_BASE = offset("offsetBase");
    private static final long OFFSET_BITSET = offset("offsetBitset");

    private WorkBatch() {}

    /**
     * Writes a batch that has no next batch.
     *
     * @param type       type of the items
     * @param function   number of the device function that executes the items, 0 to {@link #MAX_FUNCTION}
     * @param offsetBase offset of the first item, modulo 2<sup>32</sup>
     * @param items      set of items, one bit for each item
     */
    public static void set(MemorySegment memory, long at, WorkType type, int function, int offsetBase, long items) {
        Words.INT.set(memory, at + FLAGS, type.code() << TYPE_SHIFT | function << FUNCTION_SHIFT);
        Words.INT.set(memory, at + OFFSET_BASE, offsetBase);
        Words.LONG.set(memory, at + OFFSET_BITSET, items);
    }

    /**
     * Links a batch to the next batch of its channel.
     *
     * @param jump distance to the next batch, in batches; 1 to {@link #MAX_JUMP}
     */
    public static void link(MemorySegment memory, long at, int jump, boolean extended) {
        int flags = (int) Words.INT.get(memory, at + FLAGS) & ~(MAX_JUMP | EXTENDS);
        Words.INT.set(memory, at + FLAGS, flags | jump | (extended ? EXTENDS : 0));
    }

    /**
     * Adds a distance to the offset of a batch's items. Used, for example, when the items are placed in a FIFO.
     *
     * @param bytes distance in bytes, modulo 2<sup>32</sup>
     */
    public static void move(MemorySegment memory, long at, int bytes) {
        Words.INT.set(memory, at + OFFSET_BASE, offsetBase(memory, at) + bytes);
    }

    /** {@return the distance to the next batch of the channel, in batches; 0 if this batch is the last} */
    public static int nextJump(MemorySegment memory, long at) {
        return (int) Words.INT.get(memory, at + FLAGS) & MAX_JUMP;
    }

    /** {@return whether the items of the next batch also belong to this batch} */
    public static boolean nextExtends(MemorySegment memory, long at) {
        return ((int) Words.INT.get(memory, at + FLAGS) & EXTENDS) != 0;
    }

    /**
     * {@return the type of the items}
     *
     * @throws IllegalArgumentException if NCCL has no such type
     */
    public static WorkType type(MemorySegment memory, long at) {
        return WorkType.of((int) Words.INT.get(memory, at + FLAGS) >>> TYPE_SHIFT & TYPE_MASK);
    }

    /** {@return the number of the device function that executes the items} */
    public static int function(MemorySegment memory, long at) {
        return (int) Words.INT.get(memory, at + FLAGS) >>> FUNCTION_SHIFT;
    }

    /** {@return the offset of the first item, modulo 2<sup>32</sup>} */
    public static int offsetBase(MemorySegment memory, long at) {
        return (int) Words.INT.get(memory, at + OFFSET_BASE);
    }

    /** {@return the set of items, one bit for each item} */
    public static long offsetBitset(MemorySegment memory, long at) {
        return (long) Words.LONG.get(memory, at + OFFSET_BITSET);
    }

    private static int mask(int bits) {
        return (1 << bits) - 1;
    }

    private static long offset(String field) {
        return ncclDevWorkBatch.layout().byteOffset(groupElement(field));
    }
}
