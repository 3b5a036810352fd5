package org.millrace.abi;

import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevWorkColl;
import org.millrace.ffi.device.ncclDevWorkP2p;

/**
 * {@code ncclDevWorkType}: the type of a batch's work items. Millrace does not use NCCL's third type, collectives with
 * registered buffers. Facts: NCCL 2.28 {@code device.h}.
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
     * {@return the type with a given NCCL number}
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
                "work type " + code + " is none of NCCL's: the batch was overwritten, or is of another release");
    }

    /** {@return NCCL's number of this type} */
    public int code() {
        return code;
    }

    /** {@return the number of bytes of an item, a multiple of 16} */
    public int itemBytes() {
        return itemBytes;
    }
}
