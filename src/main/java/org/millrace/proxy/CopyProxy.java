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
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.Steps;

/**
 * Copies steps from one connection's memory to another connection's memory, without a network. It serves two ranks that
 * share host memory, if their devices cannot access that memory or must not access it directly
 * ({@code NCCL_P2P_USE_CUDA_MEMCPY}, {@code NCCL_SHM_USE_CUDA_MEMCPY}).
 *
 * <pre>
 *   producer                this proxy                              consumer
 *   tail (release)   →      from.tail (acquire)
 *                           to.head   (acquire)              ←      head (release)   1
 *                           a copy of data begins: from → to
 *                           ... it is complete
 *                           size: from → to
 *                           to.tail   (release)              →      tail (acquire)   2
 *   head (acquire)   ←      from.size = -1, from.head (release)                      3
 *
 *   pair 1: the consumer has read the slot before it is written again
 *   pair 2: the consumer sees data and size
 *   pair 3: the producer sees size = -1 and may write the slot
 * </pre>
 *
 * Up to {@link ConnectionLayout#SLOTS} copies are in flight. The producer and the consumer may each be a device or
 * another proxy of this class. The proxy therefore also copies the sizes.
 */
public final class CopyProxy extends AbstractProxy {

    private final ConnectionLayout layout;
    private final SendMem fromSend;
    private final RecvMem fromRecv;
    private final SendMem toSend;
    private final RecvMem toRecv;
    private final SlotCopies copies;
    private final SendStepSource source;
    private final StepWindow window = new StepWindow();

    /**
     * Creates a proxy for announced operations.
     *
     * @param from connection that the producer writes. Its counters begin at the same step as the counters of
     *             {@code to}.
     * @param to   connection that the consumer reads, with the same layout as {@code from}
     */
    public CopyProxy(ConnectionName name, ConnectionInfo from, ConnectionInfo to, OperationQueue queue,
            ProxyConnection.StopListener listener) {
        this(name, from, to, queue, listener, new SlotCopies.InPieces(from.buffers(), to.buffers()));
    }

    CopyProxy(ConnectionName name, ConnectionInfo from, ConnectionInfo to, OperationQueue queue,
            ProxyConnection.StopListener listener, SlotCopies copies) {
        super(name, listener);
        this.layout = from.layout();
        this.fromSend = from.sendMem();
        this.fromRecv = from.recvMem();
        this.toSend = to.sendMem();
        this.toRecv = to.recvMem();
        this.copies = copies;
        this.source = new OperationSendSource(name, from, new Memory(from.buffers()), queue, null);
    }

    /** Memory that is not registered with any network. */
    private record Memory(MemorySegment segment) implements MemoryRegion {
        @Override
        public void close() {
            // Only this class uses the memory, so no network has registered it.
        }
    }

    @Override
    protected int pass() {
        return post() + copies.progress() + release();
    }

    /** Begins to copy the steps that the producer has posted, if the consumer has freed their slots. */
    private int post() {
        int posted = 0;
        while (!window.isFull() && source.next()) {
            if (!Steps.reached(toSend.headAcquire() + ConnectionLayout.SLOTS, source.end)) {
                if (trace != null) {
                    trace.blocked(source.step);
                }
                break;
            }
            Protocol protocol = Protocol.of(source.protocol());
            copies.begin(protocol, layout.slotOffset(protocol, source.step), source.size);
            window.add(source.step, source.end);
            if (trace != null) {
                trace.taken(source.end, source.size, source.protocol());
            }
            source.taken();
            posted++;
        }
        return posted;
    }

    /** Publishes completed copies to the consumer, and returns their source slots to the producer. */
    private int release() {
        int released = 0;
        while (!window.isEmpty() && copies.completed() - window.removed() > 0) {
            long begin = window.oldestStep();
            long end = window.oldestEnd();
            for (long step = begin; step != end; step++) {
                int slot = ConnectionLayout.slot(step);
                toRecv.sizePlain(slot, fromRecv.sizePlain(slot));
            }
            toRecv.tailRelease(end);
            for (long step = begin; step != end; step++) {
                fromRecv.sizePlain(ConnectionLayout.slot(step), RecvMem.EMPTY);
            }
            fromSend.headRelease(end);
            if (trace != null) {
                trace.done(end);
            }
            window.removeOldest();
            released++;
        }
        return released;
    }

    @Override
    public boolean drained() {
        return window.isEmpty() && source.drained();
    }

    @Override
    public String lastSeen() {
        return "from " + fromRecv.describe(fromSend) + " to " + toRecv.describe(toSend);
    }

    /**
     * Copies from the slots of one connection to the slots of another connection. The copies advance asynchronously, or
     * in the proxy's passes. They complete in the order in which they began, like the commands of one stream. At most
     * {@link ConnectionLayout#SLOTS} copies are in flight.
     */
    interface SlotCopies {

        /**
         * @param offset offset of the slot, the same in both connections
         * @param bytes  number of bytes, 0 or more; a multiple of the line length if the protocol has lines
         */
        void begin(Protocol protocol, long offset, long bytes);

        /** Advances the copies in flight without blocking. Returns the amount of work done. */
        int progress();

        long completed();

        /**
         * Copies that the proxy's thread makes. Each pass copies a bounded number of bytes, so that a large slot does
         * not delay other connections.
         */
        final class InPieces implements SlotCopies {

            /** Number of bytes after which a pass ends. A copy of this number of bytes takes tens of microseconds. */
            static final long BYTES_A_PASS = 256 << 10;

            private final MemorySegment from;
            private final MemorySegment to;
            private final Protocol[] protocols = new Protocol[ConnectionLayout.SLOTS];
            private final long[] offsets = new long[ConnectionLayout.SLOTS];
            private final long[] sizes = new long[ConnectionLayout.SLOTS];
            private long begun;
            private long completed;
            /** Number of bytes that the oldest copy in flight has already copied. */
            private long copied;

            InPieces(MemorySegment from, MemorySegment to) {
                this.from = from;
                this.to = to;
            }

            @Override
            public void begin(Protocol protocol, long offset, long bytes) {
                int index = ConnectionLayout.slot(begun++);
                protocols[index] = protocol;
                offsets[index] = offset;
                sizes[index] = bytes;
            }

            @Override
            public int progress() {
                long left = BYTES_A_PASS;
                int pieces = 0;
                while (completed != begun && left > 0) {
                    int index = ConnectionLayout.slot(completed);
                    // Lines must be copied in ascending order, so all lines of a slot are copied in one pass. The lines
                    // of a slot are at most a few times longer than BYTES_A_PASS.
                    long piece =
                            protocols[index] == Protocol.SIMPLE ? Math.min(sizes[index] - copied, left) : sizes[index];
                    copy(protocols[index], offsets[index] + copied, piece);
                    copied += piece;
                    left -= piece;
                    pieces++;
                    if (copied == sizes[index]) {
                        copied = 0;
                        completed++;
                    }
                }
                return pieces;
            }

            private void copy(Protocol protocol, long offset, long bytes) {
                switch (protocol) {
                    case LL -> LLLine.copyWords(from, to, offset, bytes);
                    case LL128 -> LL128Line.NCCL.copyRelease(from, to, offset, bytes);
                    case SIMPLE -> MemorySegment.copy(from, offset, to, offset, bytes);
                }
            }

            @Override
            public long completed() {
                return completed;
            }
        }
    }
}
