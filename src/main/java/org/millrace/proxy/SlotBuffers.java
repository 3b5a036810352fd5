package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.net.DeviceRegion;
import org.millrace.net.MemoryRegion;

/**
 * Where the slots and the counters of a connection are: all in one piece of the host's memory, or the slots of protocol
 * Simple in a device's. LL's, which processors read, and the counters are always in the host's; those of LL128, whose
 * lines a device polls in the order in which they are stored, are then not used.
 *
 * @param layout sizes; and how all that is in one piece lies there
 * @param ll     the slots of LL, at the offset that they have in the layout
 * @param ll128  the slots of LL128, likewise
 * @param simple the slots of Simple: likewise, or in a device's memory from its beginning
 */
public record SlotBuffers(ConnectionLayout layout, SendMem sendMem, RecvMem recvMem, MemoryRegion ll,
        MemoryRegion ll128, MemoryRegion simple) {

    /** {@return buffers and counters that lie in one piece} */
    public static SlotBuffers inOne(ConnectionLayout layout, MemoryRegion memory) {
        return new SlotBuffers(layout, layout.sendMem(memory.segment()), layout.recvMem(memory.segment()), memory,
                memory, memory);
    }

    /** {@return whether the slots of Simple are in a device's memory; those of LL128 are nowhere then} */
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

    /** Of a step's slot in its {@link #region}. */
    long slotOffset(Protocol protocol, long step) {
        return protocol == Protocol.SIMPLE && simpleOnDevice()
                ? ConnectionLayout.slot(step) * layout.slotBytes(protocol)
                : layout.slotOffset(protocol, step);
    }
}
