package org.millrace.plugin;

import java.lang.foreign.MemorySegment;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.FifoLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.config.Settings;

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

    record Control(SendMem sendMem, RecvMem recvMem) {
    }

    /**
     * Where {@code ncclSendMem} lies, and {@code ncclRecvMem} behind it.
     *
     * @param nccl whose memory it is
     * @throws MillraceException if it is not filled as that NCCL fills it
     */
    Control control(boolean receives, CallingNccl nccl) {
        ConnectionLayout layout = layout();
        long bytes = SendMem.BYTES + RecvMem.BYTES;
        long at = !llIsApart() ? address(Protocol.LL) + layout.sendMemOffset()
                : receives ? address(Protocol.LL) - bytes : address(Protocol.LL) + layout.llBytes();
        MemorySegment control = NativeMemory.at(at, bytes);
        SendMem sendMem = SendMem.of(control.asSlice(0, SendMem.BYTES));
        MemorySegment second = control.asSlice(SendMem.BYTES, RecvMem.BYTES);
        StringJoiner problems = new StringJoiner("; ");
        for (FifoLayout fifo : nccl.layouts()) {
            RecvMem recvMem = RecvMem.of(second, fifo);
            String problem = difference(sendMem, recvMem);
            if (problem == null) {
                return new Control(sendMem, recvMem);
            }
            problems.add("with " + fifo + " " + problem);
        }
        throw refusal(problems + seen(sendMem, second, nccl) + ". This is " + nccl);
    }

    /** Which other layout the memory has, to go on from a sentence that says which it has not. */
    private static String seen(SendMem sendMem, MemorySegment recvMem, CallingNccl nccl) {
        for (FifoLayout other : FifoLayout.values()) {
            if (!nccl.layouts().contains(other) && difference(sendMem, RecvMem.of(recvMem, other)) == null) {
                return ": it has " + other;
            }
        }
        return "";
    }

    /** What is not as NCCL fills a connection's memory before it registers it; null if all is. */
    private static @Nullable String difference(SendMem sendMem, RecvMem recvMem) {
        String found = difference("head", sendMem.headAcquire(), 0);
        found = found != null ? found : difference("tail", recvMem.tailAcquire(), 0);
        for (int slot = 0; slot < ConnectionLayout.SLOTS && found == null; slot++) {
            found = difference("the size of slot " + slot, recvMem.sizeAcquire(slot), RecvMem.EMPTY);
            found = found != null ? found
                    : difference("the mode of slot " + slot, recvMem.modePlain(slot), RecvMem.MODE_NORMAL);
        }
        return found;
    }

    private static @Nullable String difference(String field, long found, long expected) {
        return found == expected ? null : field + " is " + found + " where " + expected + " was expected";
    }

    private static MillraceException refusal(String what) {
        return new MillraceException("cannot take this connection over, as its memory is laid out in a way that is not"
                + " known: " + what + ". " + Settings.TAKEOVER.name() + "=0 leaves it to NCCL's proxy");
    }
}
