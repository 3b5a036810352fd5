package org.millrace.plugin.takeover;

import java.lang.foreign.MemorySegment;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.KernelLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.config.Settings;
import org.millrace.plugin.host.CallingLibrary;
import org.millrace.plugin.host.CallingLibrary.Vendor;
import org.millrace.plugin.host.NativeMemory;

/**
 * Finds a connection's control memory from the buffers that NCCL registers: LL, LL128 and Simple, in this order.
 * {@code ncclSendMem} and {@code ncclRecvMem} are not registered. These two structs lie behind the three buffers if all
 * three buffers are in host memory. With {@code NCCL_ALLOC_P2P_NET_LL_BUFFERS=1}, LL's buffer is a separate allocation.
 * The control memory then lies behind LL's buffer at the sending end, and before LL's buffer at the receiving end. The
 * locator verifies these assumptions: the buffers must be adjacent, and the control memory must hold NCCL's initial
 * values.
 */
final class ConnectionLocator {

    /** First and last inspected release of NCCL. The inspection covered the struct that {@link #ends} reads. */
    private static final int FIRST_RELEASE = 219;
    private static final int LAST_RELEASE = 230;

    private final long[] addresses = new long[Protocol.values().length];
    private final long[] sizes = new long[addresses.length];
    private final boolean[] onDevice = new boolean[addresses.length];
    private final CallingLibrary nccl;
    private int registered;
    /** Address of the field in which the caller stores the handle of the first buffer. */
    private long handles;

    /** @param nccl owner of the memory, with at least one known layout */
    ConnectionLocator(CallingLibrary nccl) {
        this.nccl = nccl;
    }

    /** Adds the next of the three registered buffers. Returns the buffer's index, 0 to 2. */
    int add(long address, long bytes, boolean isOnDevice, long handle) {
        handles = registered == 0 ? handle : handles;
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

    /**
     * Returns the layout that follows from the registered sizes. The length of LL128 lines is the same in all layouts
     * that the calling NCCL may have.
     */
    ConnectionLayout layout() {
        return new ConnectionLayout(sizes[Protocol.LL.id()], sizes[Protocol.LL128.id()], sizes[Protocol.SIMPLE.id()],
                nccl.layouts().getFirst().ll128Line());
    }

    /** Returns whether LL's buffer is a separate allocation and not adjacent to the other two buffers. */
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
     * Returns one range of host memory with a place for each of the three buffers. If LL's buffer is a separate
     * allocation, its place in the range is unused.
     *
     * @throws MillraceException if the buffers are not adjacent
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
     * Ranks and channel of a connection. If the program has split the communicator from another communicator, the ranks
     * are numbered as in the other communicator.
     */
    record Ends(int rank, int peer, int channel) {
    }

    /**
     * Reads the ranks and the channel from the struct in which NCCL stores the buffers' handles. Offsets are from the
     * first handle. The struct is {@code sendNetResources} or {@code recvNetResources} (transport/net.cc, inspected in
     * NCCL 2.19 to 2.30):
     *
     * <pre>
     *  receiver  sender
     *    -136     -120   sendMem, recvMem
     *    -120     -104   tpRank
     *    -112      -96   tpRemoteRank
     *     -52      -52   channelId
     *     -40      -40   addresses of the three buffers
     * </pre>
     *
     * @return null for another library or release, or if the fields' neighbors show that the struct is another one
     */
    @Nullable
    Ends ends(boolean receives) {
        int release = nccl.version() / 100;
        boolean isInspected = nccl.vendor() == Vendor.NCCL && release >= FIRST_RELEASE && release <= LAST_RELEASE;
        for (int i = 0; i < addresses.length; i++) {
            if (!isInspected || NativeMemory.getLong(handles - 40 + i * Long.BYTES) != addresses[i]) {
                return null;
            }
        }
        long control = handles - (receives ? 136 : 120);
        return NativeMemory.getLong(control + 8) - NativeMemory.getLong(control) != SendMem.BYTES ? null
                : new Ends(NativeMemory.getInt(control + 16), NativeMemory.getInt(control + 24),
                        NativeMemory.getInt(handles - 52));
    }

    record Control(SendMem sendMem, RecvMem recvMem) {
    }

    /**
     * Locates {@code ncclSendMem} and, behind it, {@code ncclRecvMem}.
     *
     * @param receives whether this is the receiving end
     * @throws MillraceException if the memory does not hold the initial values of the calling NCCL
     */
    Control control(boolean receives) {
        ConnectionLayout layout = layout();
        long bytes = SendMem.BYTES + RecvMem.BYTES;
        long at = !llIsApart() ? address(Protocol.LL) + layout.sendMemOffset()
                : receives ? address(Protocol.LL) - bytes : address(Protocol.LL) + layout.llBytes();
        MemorySegment control = NativeMemory.at(at, bytes);
        SendMem sendMem = SendMem.of(control.asSlice(0, SendMem.BYTES));
        MemorySegment second = control.asSlice(SendMem.BYTES, RecvMem.BYTES);
        StringJoiner problems = new StringJoiner("; ");
        for (KernelLayout known : nccl.layouts()) {
            RecvMem recvMem = RecvMem.of(second, known);
            String problem = difference(sendMem, recvMem);
            if (problem == null) {
                return new Control(sendMem, recvMem);
            }
            problems.add("with " + known + " " + problem);
        }
        throw refusal(problems + seen(sendMem, second) + ". This is " + nccl);
    }

    /**
     * Searches for a layout that the memory matches, among the layouts that the calling NCCL does not use. Returns a
     * clause for the error message that names this layout; empty if no layout matches.
     */
    private String seen(SendMem sendMem, MemorySegment recvMem) {
        for (KernelLayout other : KernelLayout.values()) {
            if (!nccl.layouts().contains(other) && difference(sendMem, RecvMem.of(recvMem, other)) == null) {
                return ": it has " + other;
            }
        }
        return "";
    }

    /**
     * Compares fields of the memory with the values that NCCL stores before it registers the memory. Returns the first
     * difference; null if all are equal.
     */
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
