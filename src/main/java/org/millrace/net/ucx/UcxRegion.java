package org.millrace.net.ucx;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.ffi.ucx.ucp_h;
import org.millrace.ffi.ucx.ucp_request_param;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;

/**
 * Memory for UCX's messages. The parameters of a send and of a receive are written once, here. Memory that is not
 * registered has no handle. A card that needs a handle then creates it at its first use of the memory, and keeps it.
 */
final class UcxRegion extends NativeRegion {

    private final Arena arena = Arena.ofShared();
    private final UcxContext context;
    private final long memory;
    private final long sendParam;
    private final long eagerSendParam;
    private final long receiveParam;

    private UcxRegion(OpenResources network, UcxContext context, MemorySegment segment, long memory) {
        super(network, segment, "UCX region");
        this.context = context;
        this.memory = memory;
        this.sendParam = param(arena, memory, 0);
        this.eagerSendParam = param(arena, memory, ucp_h.UCP_OP_ATTR_FLAG_FAST_CMPL());
        this.receiveParam = param(arena, memory, ucp_h.UCP_OP_ATTR_FLAG_NO_IMM_CMPL());
    }

    /** Registers memory. */
    public static UcxRegion register(OpenResources network, UcxContext context, MemorySegment segment) {
        return new UcxRegion(network, context, segment,
                segment.isNative() && segment.byteSize() > 0 ? context.map(segment) : 0);
    }

    /** Returns a region of all memory of the process. */
    public static UcxRegion all(OpenResources network, UcxContext context) {
        return new UcxRegion(network, context, ALL_MEMORY, 0);
    }

    /** Returns the address of new parameters for messages in memory with a handle, or 0 for none. */
    public static long param(Arena arena, long memory, int flags) {
        MemorySegment param = ucp_request_param.allocate(arena);
        ucp_request_param.op_attr_mask(param, flags | (memory == 0 ? 0 : ucp_h.UCP_OP_ATTR_FIELD_MEMH()));
        ucp_request_param.memh(param, memory);
        return param.address();
    }

    /** {@return the address of a send's parameters} */
    public long sendParam() {
        return sendParam;
    }

    /** {@return the address of the parameters of a send at once, without asking the receiver first} */
    public long eagerSendParam() {
        return eagerSendParam;
    }

    /** {@return the address of a receive's parameters: a receive always returns a request} */
    public long receiveParam() {
        return receiveParam;
    }

    @Override
    protected void release() {
        if (memory != 0) {
            context.unmap(memory);
        }
        arena.close();
    }
}
