package org.millrace.abi;

import org.millrace.ffi.device.device_h;

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
     * @param code the number
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
