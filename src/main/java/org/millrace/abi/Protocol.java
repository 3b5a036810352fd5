package org.millrace.abi;

import org.millrace.ffi.device.device_h;

/**
 * NCCL's three protocols, which indicate in different ways that data has arrived. The ids are the same as in NCCL. The
 * constants have the order of a connection's buffers in memory. The buffers are registered in the same order.
 */
public enum Protocol {
    /**
     * Every 8 bytes carry 4 bytes of data and a flag. This protocol has the lowest latency, but only half of the
     * bandwidth. See {@link LLLine}.
     */
    LL(device_h.NCCL_PROTO_LL()),
    /** Every 128 bytes carry 120 bytes of data and a flag. See {@link LL128Line}. */
    LL128(device_h.NCCL_PROTO_LL128()),
    /** The data has no flags. Only {@code tail} indicates that data has arrived. */
    SIMPLE(device_h.NCCL_PROTO_SIMPLE());

    private static final Protocol[] BY_ID = values();

    private final int id;

    Protocol(int id) {
        this.id = id;
    }

    /** {@return NCCL's number of this protocol: 0, 1 or 2} */
    public int id() {
        return id;
    }

    /**
     * {@return the protocol with NCCL's given number}
     *
     * @param id 0, 1 or 2
     * @throws IllegalArgumentException if NCCL has no such number
     */
    public static Protocol of(int id) {
        if (id < 0 || id >= BY_ID.length) {
            throw new IllegalArgumentException(id + " is not a protocol: NCCL has 0 (LL), 1 (LL128) and 2 (Simple)");
        }
        return BY_ID[id];
    }
}
