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
 * Finds a connection's control memory from what NCCL registers: the LL, LL128 and Simple buffers, in this order, and
 * behind them, unregistered, {@code ncclSendMem} and {@code ncclRecvMem}. Nothing is believed unseen: the buffers must
 * touch, and the control memory must hold what NCCL puts there before it registers.
 */
final class ConnectionLocator {

    private final long[] addresses = new long[Protocol.values().length];
    private final long[] sizes = new long[addresses.length];
    private int registered;

    /** Takes the next registered buffer in; returns its number. */
    int add(long address, long bytes) {
        if (registered == addresses.length) {
            throw new MillraceException(
                    "a fourth buffer of " + bytes + " bytes was registered with a connection that was taken over:"
                            + " NCCL registered user memory; set NCCL_LOCAL_REGISTER=0 and NCCL_GRAPH_REGISTER=0, or "
                            + Settings.TAKEOVER.name() + "=0");
        }
        addresses[registered] = address;
        sizes[registered] = bytes;
        return registered++;
    }

    boolean complete() {
        return registered == addresses.length;
    }

    /** Where everything lies, by the sizes that were registered. */
    ConnectionLayout layout() {
        return new ConnectionLayout(sizes[Protocol.LL.id()], sizes[Protocol.LL128.id()], sizes[Protocol.SIMPLE.id()]);
    }

    /**
     * The whole of the connection's memory.
     *
     * @throws MillraceException if it is not laid out, or not filled, as NCCL 2.28 to 2.30 do with buffers of their own
     *                           in host memory
     */
    MemorySegment memory() {
        ConnectionLayout layout = layout();
        for (Protocol protocol : Protocol.values()) {
            long expected = addresses[0] + layout.bufferOffset(protocol);
            if (addresses[protocol.id()] != expected) {
                throw refusal("the " + protocol + " buffer is at 0x" + Long.toHexString(addresses[protocol.id()])
                        + " and not behind the one before, at 0x" + Long.toHexString(expected));
            }
        }
        MemorySegment memory = NativeMemory.at(addresses[0], layout.totalBytes());
        SendMem sendMem = layout.sendMem(memory);
        RecvMem recvMem = layout.recvMem(memory);
        requireInitial("head", sendMem.headAcquire(), 0);
        requireInitial("tail", recvMem.tailAcquire(), 0);
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            requireInitial("the size of slot " + slot, recvMem.sizeAcquire(slot), RecvMem.EMPTY);
            requireInitial("the mode of slot " + slot, recvMem.modePlain(slot), RecvMem.MODE_NORMAL);
        }
        return memory;
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
