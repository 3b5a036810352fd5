package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevKernelArgs;

/**
 * {@code ncclDevKernelArgs}: the arguments of a kernel.
 *
 * <pre>
 *    0          8              16        17     20         24         32         48
 *    +----------+--------------+---------+------+----------+----------+----------+---------- - - ----------+
 *    | comm     | channelMask  | storage | pad  | workMask | workBuf  |   pad    | batches, perhaps items  |
 *    +----------+--------------+---------+------+----------+----------+----------+---------- - - ----------+
 *      pointer    u64            u8               u32        pointer
 * </pre>
 *
 * <p>
 * The host writes the arguments before the launch, which orders all accesses, and the kernel reads them. A launch
 * copies the arguments, so the host may change them afterwards. The kernel has one block for each bit of the mask, in
 * ascending order. Facts: NCCL 2.28 {@code device.h}, {@code enqueue.cc}.
 */
public final class KernelArguments {
    /** The struct's size, which is the offset of the batches. */
    public static final int BYTES = (int) ncclDevKernelArgs.sizeof();
    /** Maximum number of bytes of a kernel's arguments, including batches and items. */
    public static final int MAX_BYTES = 4096;
    /** Maximum number of channels. */
    public static final int MAX_CHANNELS = device_h.MAXCHANNELS();

    private static final long COMM = offset("comm");
    private static final long CHANNEL_MASK = offset("channelMask");
    private static final long STORAGE = offset("workStorageType");
    private static final long WORK_MASK = offset("workMask");
    private static final long WORK_BUFFER = offset("workBuf");

    private final MemorySegment segment;

    private KernelArguments(MemorySegment segment) {
        this.segment = segment;
    }

    /**
     * {@return a view of a kernel's arguments}
     *
     * @param segment the struct, its batches, and its items if the arguments contain them
     * @throws IllegalArgumentException if the segment is shorter than the struct
     */
    public static KernelArguments of(MemorySegment segment) {
        if (segment.byteSize() < BYTES) {
            throw new IllegalArgumentException(
                    "a kernel's arguments are " + BYTES + " bytes or more, but the segment has " + segment.byteSize());
        }
        return new KernelArguments(segment);
    }

    /**
     * Sets the fields that are known before the work is placed.
     *
     * @param channelMask one bit for each channel with work
     */
    public void set(long communicator, long channelMask, WorkStorage storage) {
        Words.LONG.set(segment, COMM, communicator);
        Words.LONG.set(segment, CHANNEL_MASK, channelMask);
        segment.set(ValueLayout.JAVA_BYTE, STORAGE, (byte) storage.code());
    }

    /**
     * Sets the location of the items.
     *
     * @param address address of the items' memory, 0 if the arguments contain the items
     * @param mask    mask for the offsets of items; all ones without a FIFO
     */
    public void place(long address, int mask) {
        Words.LONG.set(segment, WORK_BUFFER, address);
        Words.INT.set(segment, WORK_MASK, mask);
    }

    /** {@return the arguments, including batches and items} */
    public MemorySegment segment() {
        return segment;
    }

    /** {@return the address of the {@link KernelCommunicator}} */
    public long communicator() {
        return (long) Words.LONG.get(segment, COMM);
    }

    /** {@return a mask with one bit for each channel with work} */
    public long channelMask() {
        return (long) Words.LONG.get(segment, CHANNEL_MASK);
    }

    /** {@return the kind of memory that contains the items} */
    public WorkStorage storage() {
        return WorkStorage.of(segment.get(ValueLayout.JAVA_BYTE, STORAGE));
    }

    /** {@return the mask for the offset of an item} */
    public int workMask() {
        return (int) Words.INT.get(segment, WORK_MASK);
    }

    /** {@return the address of the items' memory} */
    public long workBuffer() {
        return (long) Words.LONG.get(segment, WORK_BUFFER);
    }

    /** {@return the channel of a block: the position of the mask's bit that has {@code block} set bits below it} */
    public int channel(int block) {
        long mask = channelMask();
        for (int below = 0; below < block; below++) {
            mask &= mask - 1;
        }
        return Long.numberOfTrailingZeros(mask);
    }

    /** {@return the offset of a batch in the arguments} */
    public static long batchOffset(int index) {
        return BYTES + (long) index * WorkBatch.BYTES;
    }

    private static long offset(String field) {
        return ncclDevKernelArgs.layout().byteOffset(groupElement(field));
    }

    /**
     * {@code ncclDevWorkStorageType}: the kind of memory that contains a kernel's work items. Facts: NCCL 2.28
     * {@code device.h}, {@code enqueue.cc}.
     */
    public enum WorkStorage {
        /** In the kernel's arguments, after the batches. Offsets count from the beginning of the arguments. */
        ARGUMENTS(device_h.ncclDevWorkStorageTypeArgs()),
        /** In the work FIFO. Offsets are values of its counters. */
        FIFO(device_h.ncclDevWorkStorageTypeFifo()),
        /** In separate memory, for a plan that is replayed. Offsets count from the beginning of that memory. */
        PERSISTENT(device_h.ncclDevWorkStorageTypePersistent());

        private static final WorkStorage[] ALL = values();

        private final int code;

        WorkStorage(int code) {
            this.code = code;
        }

        /**
         * {@return the storage with a given NCCL number}
         *
         * @throws IllegalArgumentException if NCCL has no such number
         */
        public static WorkStorage of(int code) {
            for (WorkStorage storage : ALL) {
                if (storage.code == code) {
                    return storage;
                }
            }
            throw new IllegalArgumentException("work storage " + code
                    + " is none of NCCL's: the kernel's arguments were overwritten, or are of another release");
        }

        /** {@return NCCL's number of this storage} */
        public int code() {
            return code;
        }
    }
}
