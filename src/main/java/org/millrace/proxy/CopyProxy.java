package org.millrace.proxy;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.net.MemoryRegion;

/**
 * Carries steps from one connection's memory to another's, where no network lies between: the proxy of ranks that share
 * memory which their devices do not reach, or are not to reach ({@code NCCL_P2P_USE_CUDA_MEMCPY},
 * {@code NCCL_SHM_USE_CUDA_MEMCPY}).
 *
 * <pre>
 *   producer                this proxy                              consumer
 *   tail (release)   →      from.tail (acquire)
 *                           to.head   (acquire)              ←      head (release)   1
 *                           data, size: from → to
 *                           to.tail   (release)              →      tail (acquire)   2
 *   head (acquire)   ←      from.size = -1, from.head (release)                      3
 *
 *   1 pairs: the consumer has read the slot before it is written again
 *   2 pairs: it sees data and size
 *   3 pairs: the producer sees size = -1 and may write the slot
 * </pre>
 *
 * Either side may be a device or another such proxy, which is why sizes are handed on.
 */
public final class CopyProxy extends AbstractProxy {

    private final ConnectionLayout layout;
    private final MemorySegment fromMemory;
    private final MemorySegment toMemory;
    private final SendMem fromSend;
    private final RecvMem fromRecv;
    private final SendMem toSend;
    private final RecvMem toRecv;
    private final SendStepSource source;

    /**
     * A proxy that is told its operations.
     *
     * @param from where the producer writes; its counters begin where those of {@code to} do
     * @param to   where the consumer reads; of the same layout
     */
    public CopyProxy(ConnectionName name, ConnectionInfo from, ConnectionInfo to, OperationQueue queue,
            StopListener listener) {
        super(name, listener);
        this.layout = from.layout();
        this.fromMemory = from.buffers();
        this.toMemory = to.buffers();
        this.fromSend = from.sendMem();
        this.fromRecv = from.recvMem();
        this.toSend = to.sendMem();
        this.toRecv = to.recvMem();
        this.source = new OperationSendSource(name, from, new Memory(from.buffers()), queue, null);
    }

    /** Memory that no network needs to know. */
    private record Memory(MemorySegment segment) implements MemoryRegion {
        @Override
        public void close() {
            // nothing was registered
        }
    }

    @Override
    public int progress() {
        int copied = 0;
        while (source.next()) {
            if (!Steps.reached(toSend.headAcquire() + ConnectionLayout.SLOTS, source.end)) {
                if (trace != null) {
                    trace.blocked(source.step);
                }
                break;
            }
            copy();
            if (trace != null) {
                trace.taken(source.end, source.size, source.protocol());
                trace.done(source.end);
            }
            source.taken();
            copied++;
        }
        return copied;
    }

    private void copy() {
        long end = source.end;
        Protocol protocol = Protocol.of(source.protocol());
        long offset = layout.slotOffset(protocol, source.step);
        switch (protocol) {
            case LL -> LLLine.copyWords(fromMemory, toMemory, offset, source.size);
            case LL128 -> LL128Line.copyRelease(fromMemory, toMemory, offset, source.size);
            case SIMPLE -> MemorySegment.copy(fromMemory, offset, toMemory, offset, source.size);
        }
        for (long step = source.step; step != end; step++) {
            int slot = ConnectionLayout.slot(step);
            toRecv.sizePlain(slot, fromRecv.sizePlain(slot));
        }
        toRecv.tailRelease(end);
        for (long step = source.step; step != end; step++) {
            fromRecv.sizePlain(ConnectionLayout.slot(step), RecvMem.EMPTY);
        }
        fromSend.headRelease(end);
    }

    @Override
    public boolean drained() {
        return source.drained();
    }

    @Override
    public String lastSeen() {
        return "from " + fromRecv.describe(fromSend) + " to " + toRecv.describe(toSend);
    }
}
