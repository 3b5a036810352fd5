package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevKernelArgs;

/**
 * {@code ncclDevKernelArgs}: what a kernel is launched with.
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
 * Written by the host before the launch, which orders all accesses; read by the kernel. A launch copies the arguments,
 * so that they may be changed after it. The kernel has a block for each bit of the mask, in ascending order. Facts:
 * NCCL 2.28 {@code device.h}, {@code enqueue.cc}.
 */
public final class KernelArguments {
    /** The struct's size: where the batches begin. */
    public static final int BYTES = (int) ncclDevKernelArgs.sizeof();
    /** The most bytes of a kernel's arguments, batches and items included. */
    public static final int MAX_BYTES = 4096;
    /** The most channels. */
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
     * @param segment the struct, its batches, and its items if they lie there
     * @throws IllegalArgumentException if it is shorter than the struct
     */
    public static KernelArguments of(MemorySegment segment) {
        if (segment.byteSize() < BYTES) {
            throw new IllegalArgumentException(
                    "a kernel's arguments are " + BYTES + " bytes or more, but the segment has " + segment.byteSize());
        }
        return new KernelArguments(segment);
    }

    /**
     * Sets what is known before the work is placed.
     *
     * @param channelMask a bit for each channel with work
     */
    public void set(long communicator, long channelMask, WorkStorage storage) {
        Words.LONG.set(segment, COMM, communicator);
        Words.LONG.set(segment, CHANNEL_MASK, channelMask);
        segment.set(ValueLayout.JAVA_BYTE, STORAGE, (byte) storage.code());
    }

    /**
     * Sets where the items lie.
     *
     * @param address of their memory, 0 if it is the arguments'
     * @param mask    what an offset is masked with: all ones for no FIFO
     */
    public void place(long address, int mask) {
        Words.LONG.set(segment, WORK_BUFFER, address);
        Words.INT.set(segment, WORK_MASK, mask);
    }

    /** {@return the arguments, batches and items included} */
    public MemorySegment segment() {
        return segment;
    }

    /** {@return address of the {@link KernelCommunicator}} */
    public long communicator() {
        return (long) Words.LONG.get(segment, COMM);
    }

    /** {@return a bit for each channel with work} */
    public long channelMask() {
        return (long) Words.LONG.get(segment, CHANNEL_MASK);
    }

    /** {@return where the items lie} */
    public WorkStorage storage() {
        return WorkStorage.of(segment.get(ValueLayout.JAVA_BYTE, STORAGE));
    }

    /** {@return what an item's offset is masked with} */
    public int workMask() {
        return (int) Words.INT.get(segment, WORK_MASK);
    }

    /** {@return address of the items' memory} */
    public long workBuffer() {
        return (long) Words.LONG.get(segment, WORK_BUFFER);
    }

    /** {@return the channel that a block serves: the mask's bit with as many set ones below it} */
    public int channel(int block) {
        long mask = channelMask();
        for (int below = 0; below < block; below++) {
            mask &= mask - 1;
        }
        return Long.numberOfTrailingZeros(mask);
    }

    /** {@return where a batch lies in the arguments} */
    public static long batchOffset(int index) {
        return BYTES + (long) index * WorkBatch.BYTES;
    }

    private static long offset(String field) {
        return ncclDevKernelArgs.layout().byteOffset(groupElement(field));
    }

    /**
     * {@code ncclDevWorkStorageType}: where a kernel's work items lie. Facts: NCCL 2.28 {@code device.h},
     * {@code enqueue.cc}.
     */
    public enum WorkStorage {
        /** Behind the batches, in the kernel's arguments: offsets count from the arguments' beginning. */
        ARGUMENTS(device_h.ncclDevWorkStorageTypeArgs()),
        /** In the work FIFO: offsets are its counters' values. */
        FIFO(device_h.ncclDevWorkStorageTypeFifo()),
        /** In memory of their own, for a plan that is replayed: offsets count from its beginning. */
        PERSISTENT(device_h.ncclDevWorkStorageTypePersistent());

        private static final WorkStorage[] ALL = values();

        private final int code;

        WorkStorage(int code) {
            this.code = code;
        }

        /**
         * {@return the storage with a number of NCCL's}
         *
         * @throws IllegalArgumentException if there is none
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

        /** {@return NCCL's number} */
        public int code() {
            return code;
        }
    }
}
