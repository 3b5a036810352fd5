package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.net.DeviceRegion;
import org.millrace.net.MemoryRegion;

/**
 * The locations of the slots and counters of a connection. Slots and counters are all in one region of host memory, or
 * the slots of protocol Simple are in a device's memory. The counters and the slots of LL are always in host memory,
 * because the CPU reads them. If the slots of Simple are in a device's memory, LL128 is not used: a kernel relies on
 * the order of the stores to an LL128 line, and copies to device memory do not keep this order.
 *
 * @param layout sizes of the buffers, and their offsets in one region
 * @param ll     region of the LL slots, at their offset in the layout
 * @param ll128  region of the LL128 slots, at their offset in the layout
 * @param simple region of the Simple slots: at their offset in the layout, or at offset 0 of a device's memory
 */
public record SlotBuffers(ConnectionLayout layout, SendMem sendMem, RecvMem recvMem, MemoryRegion ll,
        MemoryRegion ll128, MemoryRegion simple) {

    /** {@return slots and counters in one region of host memory} */
    public static SlotBuffers inOne(ConnectionLayout layout, MemoryRegion memory) {
        return new SlotBuffers(layout, layout.sendMem(memory.segment()), layout.recvMem(memory.segment()), memory,
                memory, memory);
    }

    /** {@return whether the slots of Simple are in a device's memory; LL128 is then not used} */
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

    /** Returns the offset of a step's slot in the {@link #region} of its protocol. */
    long slotOffset(Protocol protocol, long step) {
        return protocol == Protocol.SIMPLE && simpleOnDevice()
                ? ConnectionLayout.slot(step) * layout.slotBytes(protocol)
                : layout.slotOffset(protocol, step);
    }
}
