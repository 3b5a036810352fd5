package org.millrace.net.ucx;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.ffi.ucx.ucp_h;
import org.millrace.ffi.ucx.ucp_request_param;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;

/**
 * Memory that UCX sends from or receives into. The parameters of sends and receives are written only once, when the
 * region is created. Memory that is not registered has no UCX handle. If a card needs a handle, UCX creates the handle
 * at the card's first use of the memory, and keeps the handle.
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

    public static UcxRegion register(OpenResources network, UcxContext context, MemorySegment segment) {
        return new UcxRegion(network, context, segment,
                segment.isNative() && segment.byteSize() > 0 ? context.map(segment) : 0);
    }

    public static UcxRegion all(OpenResources network, UcxContext context) {
        return new UcxRegion(network, context, ALL_MEMORY, 0);
    }

    /**
     * Creates parameters for sends or receives. Returns their address.
     *
     * @param memory UCX handle of the memory; 0 if the memory is not registered
     * @param flags  flags of the parameters' field {@code op_attr_mask}
     */
    public static long param(Arena arena, long memory, int flags) {
        MemorySegment param = ucp_request_param.allocate(arena);
        ucp_request_param.op_attr_mask(param, flags | (memory == 0 ? 0 : ucp_h.UCP_OP_ATTR_FIELD_MEMH()));
        ucp_request_param.memh(param, memory);
        return param.address();
    }

    /** {@return the address of the parameters for a send} */
    public long sendParam() {
        return sendParam;
    }

    /** {@return the address of the parameters for an eager send, which does not ask the receiver first} */
    public long eagerSendParam() {
        return eagerSendParam;
    }

    /**
     * {@return the address of the parameters for a receive; a receive with these parameters always returns a request}
     */
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
