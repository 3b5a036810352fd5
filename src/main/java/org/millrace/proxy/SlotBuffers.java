package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.net.DeviceRegion;
import org.millrace.net.MemoryRegion;

/**
 * The locations of the slots and the counters of a connection. All of them lie in one piece of host memory, or the
 * slots of protocol Simple lie in a device's memory. The slots of LL, which processors read, and the counters are
 * always in host memory. If Simple is on a device, LL128 is not used, because a device polls its lines in the order of
 * their stores.
 *
 * @param layout sizes of the buffers, and the offsets of all buffers that lie in one piece
 * @param ll     the slots of LL, at their offset in the layout
 * @param ll128  the slots of LL128, at their offset in the layout
 * @param simple the slots of Simple, at their offset in the layout, or at the beginning of a device's memory
 */
public record SlotBuffers(ConnectionLayout layout, SendMem sendMem, RecvMem recvMem, MemoryRegion ll,
        MemoryRegion ll128, MemoryRegion simple) {

    /** {@return buffers and counters that lie in one piece} */
    public static SlotBuffers inOne(ConnectionLayout layout, MemoryRegion memory) {
        return new SlotBuffers(layout, layout.sendMem(memory.segment()), layout.recvMem(memory.segment()), memory,
                memory, memory);
    }

    /** {@return whether the slots of Simple are in a device's memory; slots of LL128 do not exist then} */
    public boolean simpleOnDevice() {
        return simple instanceof DeviceRegion;
    }

    MemoryRegion region(Protocol protocol) {
        return switch (protocol) {
            case LL -> ll;
            case LL128 -> ll128;
            case SIMPLE -> simple;
        };
    }

    /** Returns the offset of a step's slot in its {@link #region}. */
    long slotOffset(Protocol protocol, long step) {
        return protocol == Protocol.SIMPLE && simpleOnDevice()
                ? ConnectionLayout.slot(step) * layout.slotBytes(protocol)
                : layout.slotOffset(protocol, step);
    }
}
