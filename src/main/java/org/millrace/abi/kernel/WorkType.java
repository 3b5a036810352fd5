package org.millrace.abi.kernel;

import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevWorkColl;
import org.millrace.ffi.device.ncclDevWorkP2p;

/**
 * {@code ncclDevWorkType}: the type of the work items of a batch. Millrace does not use NCCL's third type, collectives
 * with registered buffers. Facts: NCCL 2.28 {@code device.h}.
 */
public enum WorkType {
    /** A send and a receive: {@link PointToPointWork}. */
    POINT_TO_POINT(device_h.ncclDevWorkTypeP2p(), ncclDevWorkP2p.sizeof()),
    /** A collective: {@link CollectiveWork}. */
    COLLECTIVE(device_h.ncclDevWorkTypeColl(), ncclDevWorkColl.sizeof());

    private static final WorkType[] ALL = values();

    private final int code;
    private final int itemBytes;

    WorkType(int code, long itemBytes) {
        this.code = code;
        this.itemBytes = (int) itemBytes;
    }

    /**
     * {@return the type with NCCL's given number}
     *
     * @throws IllegalArgumentException if NCCL has no such number, or Millrace does not use the type
     */
    public static WorkType of(int code) {
        for (WorkType type : ALL) {
            if (type.code == code) {
                return type;
            }
        }
        throw new IllegalArgumentException(
                "work type " + code + " is not one of NCCL's: the batch was overwritten, or is of another release");
    }

    /** {@return NCCL's number of this type} */
    public int code() {
        return code;
    }

    /** {@return the size of a work item of this type in bytes, a multiple of 16} */
    public int itemBytes() {
        return itemBytes;
    }
}
