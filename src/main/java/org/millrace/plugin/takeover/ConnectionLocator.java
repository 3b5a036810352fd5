package org.millrace.plugin.takeover;

import java.lang.foreign.MemorySegment;
import org.millrace.MillraceException;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.config.Settings;
import org.millrace.plugin.shim.NativeMemory;

/**
 * Finds a connection's control memory from what NCCL registers: the LL, LL128 and Simple buffers, in this order.
 * {@code ncclSendMem} and {@code ncclRecvMem} are not registered. They lie behind the three where all are in the host's
 * memory. Where LL's buffer has memory of its own they lie behind it at the sending end, and before it at the receiving
 * one ({@code NCCL_ALLOC_P2P_NET_LL_BUFFERS=1}). Nothing is believed unseen: the buffers must touch, and the control
 * memory must hold what NCCL puts there before it registers.
 */
final class ConnectionLocator {

    private final long[] addresses = new long[Protocol.values().length];
    private final long[] sizes = new long[addresses.length];
    private final boolean[] onDevice = new boolean[addresses.length];
    private int registered;

    /** Takes the next of the three registered buffers in; returns its number. */
    int add(long address, long bytes, boolean isOnDevice) {
        addresses[registered] = address;
        sizes[registered] = bytes;
        onDevice[registered] = isOnDevice;
        return registered++;
    }

    boolean complete() {
        return registered == addresses.length;
    }

    /** Whether the slots of Simple are in a device's memory. */
    boolean simpleOnDevice() {
        return onDevice[Protocol.SIMPLE.id()];
    }

    long address(Protocol protocol) {
        return addresses[protocol.id()];
    }

    /** Where everything lies, by the sizes that were registered. */
    ConnectionLayout layout() {
        return new ConnectionLayout(sizes[Protocol.LL.id()], sizes[Protocol.LL128.id()], sizes[Protocol.SIMPLE.id()]);
    }

    /** Whether LL's buffer is not before the other two, in one piece with them. */
    boolean llIsApart() {
        return address(Protocol.LL128) != address(Protocol.LL) + layout().llBytes();
    }

    /** The buffer of LL, in the host's memory. */
    MemorySegment ll() {
        if (onDevice[Protocol.LL.id()]) {
            throw refusal("the LL buffer is in a device's memory, where no processor reads its lines");
        }
        return NativeMemory.at(address(Protocol.LL), layout().llBytes());
    }

    /**
     * The three buffers in one piece of the host's memory. Where LL's buffer is apart, NCCL leaves its place free.
     *
     * @throws MillraceException if they do not touch
     */
    MemorySegment buffers() {
        ConnectionLayout layout = layout();
        long base = address(Protocol.LL128) - layout.bufferOffset(Protocol.LL128);
        long expected = base + layout.bufferOffset(Protocol.SIMPLE);
        if (address(Protocol.SIMPLE) != expected) {
            throw refusal("the SIMPLE buffer is at 0x" + Long.toHexString(address(Protocol.SIMPLE))
                    + " and not behind the one before, at 0x" + Long.toHexString(expected));
        }
        return NativeMemory.at(base, layout.sendMemOffset());
    }

    /**
     * Where {@code ncclSendMem} lies, and {@code ncclRecvMem} behind it.
     *
     * @throws MillraceException if it is not filled as NCCL 2.28 to 2.30 do
     */
    MemorySegment control(boolean receives) {
        ConnectionLayout layout = layout();
        long bytes = SendMem.BYTES + RecvMem.BYTES;
        long at = !llIsApart() ? address(Protocol.LL) + layout.sendMemOffset()
                : receives ? address(Protocol.LL) - bytes : address(Protocol.LL) + layout.llBytes();
        MemorySegment control = NativeMemory.at(at, bytes);
        requireInitial("head", SendMem.of(control.asSlice(0, SendMem.BYTES)).headAcquire(), 0);
        RecvMem recvMem = RecvMem.of(control.asSlice(SendMem.BYTES, RecvMem.BYTES));
        requireInitial("tail", recvMem.tailAcquire(), 0);
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            requireInitial("the size of slot " + slot, recvMem.sizeAcquire(slot), RecvMem.EMPTY);
            requireInitial("the mode of slot " + slot, recvMem.modePlain(slot), RecvMem.MODE_NORMAL);
        }
        return control;
    }

    private static void requireInitial(String field, long found, long expected) {
        if (found != expected) {
            throw refusal(field + " is " + found + " where " + expected + " was expected");
        }
    }

    private static MillraceException refusal(String what) {
        return new MillraceException(
                "cannot take this connection over: " + what + ". Its memory is not laid out as by NCCL 2.28 to 2.30; "
                        + Settings.TAKEOVER.name() + "=0 leaves it to NCCL's proxy");
    }
}
