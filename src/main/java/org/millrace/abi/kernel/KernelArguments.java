package org.millrace.abi.kernel;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevKernelArgs;
import org.millrace.foreign.Words;

/**
 * {@code ncclDevKernelArgs}: the arguments of a kernel launch.
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
 * The host writes the arguments before the launch, and the kernel reads them. The launch orders these accesses. The
 * launch also copies the arguments, so the host may change its memory afterwards. The kernel has one block for each set
 * bit of {@code channelMask}, in ascending order. Facts: NCCL 2.28 {@code device.h}, {@code enqueue.cc}.
 */
public final class KernelArguments {
    /** Size of the struct in bytes, which is also the offset of the first batch. */
    public static final int BYTES = (int) ncclDevKernelArgs.sizeof();
    /** Maximum size of a kernel's arguments in bytes, including batches and work items. */
    public static final int MAX_BYTES = 4096;
    /** Maximum number of channels of a communicator. */
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
     * @param segment memory of the struct, its batches, and its work items if the arguments contain them
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
     * Sets the fields that do not depend on the location of the work items.
     *
     * @param communicator address of the {@link KernelCommunicator}
     * @param channelMask  mask with one bit for each channel that has work
     */
    public void set(long communicator, long channelMask, WorkStorage storage) {
        Words.LONG.set(segment, COMM, communicator);
        Words.LONG.set(segment, CHANNEL_MASK, channelMask);
        segment.set(ValueLayout.JAVA_BYTE, STORAGE, (byte) storage.code());
    }

    /**
     * Sets the location of the work items.
     *
     * @param address address of the memory that contains the work items; 0 if the arguments contain them
     * @param mask    mask for the offsets of work items; all bits are set if the memory is not a FIFO
     */
    public void place(long address, int mask) {
        Words.LONG.set(segment, WORK_BUFFER, address);
        Words.INT.set(segment, WORK_MASK, mask);
    }

    /** {@return the memory of the arguments, including batches and work items} */
    public MemorySegment segment() {
        return segment;
    }

    /** {@return the address of the {@link KernelCommunicator}} */
    public long communicator() {
        return (long) Words.LONG.get(segment, COMM);
    }

    /** {@return a mask with one bit for each channel that has work} */
    public long channelMask() {
        return (long) Words.LONG.get(segment, CHANNEL_MASK);
    }

    /** {@return the kind of memory that contains the work items} */
    public WorkStorage storage() {
        return WorkStorage.of(segment.get(ValueLayout.JAVA_BYTE, STORAGE));
    }

    /** {@return the mask for the offsets of work items} */
    public int workMask() {
        return (int) Words.INT.get(segment, WORK_MASK);
    }

    /** {@return the address of the memory that contains the work items} */
    public long workBuffer() {
        return (long) Words.LONG.get(segment, WORK_BUFFER);
    }

    /**
     * {@return the channel of a block: the position of set bit number {@code block} of {@code channelMask}, counted
     * from 0 at the lowest set bit}
     */
    public int channel(int block) {
        long mask = channelMask();
        for (int below = 0; below < block; below++) {
            mask &= mask - 1;
        }
        return Long.numberOfTrailingZeros(mask);
    }

    /** {@return the offset of a batch in the arguments, in bytes} */
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
        /**
         * The work items lie in the kernel's arguments, after the batches. Offsets count from the beginning of the
         * arguments.
         */
        ARGUMENTS(device_h.ncclDevWorkStorageTypeArgs()),
        /**
         * The work items lie in the work FIFO. Offsets are values of the FIFO's counters ({@link WorkFifoCounters}).
         */
        FIFO(device_h.ncclDevWorkStorageTypeFifo()),
        /**
         * The work items lie in separate memory, for a plan that is launched repeatedly. Offsets count from the
         * beginning of that memory.
         */
        PERSISTENT(device_h.ncclDevWorkStorageTypePersistent());

        private static final WorkStorage[] ALL = values();

        private final int code;

        WorkStorage(int code) {
            this.code = code;
        }

        /**
         * {@return the kind of memory with NCCL's given number}
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
                    + " is not one of NCCL's: the kernel's arguments were overwritten, or are of another release");
        }

        /** {@return NCCL's number of this kind of memory} */
        public int code() {
            return code;
        }
    }
}
