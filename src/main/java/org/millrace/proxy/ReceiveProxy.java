package org.millrace.proxy;

import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.check.CheckedReceiver;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyException;
import org.millrace.proxy.spi.Steps;

/**
 * The proxy of the receiving side. It receives a frame into its slot as soon as the device has freed the slot, and
 * notifies the device when the frame is complete.
 *
 * <pre>
 *   this proxy                               device
 *   head  (acquire)                ←        head  (release)   pairs: the device has read the slot before it is
 *                                                             written again
 *   frame → slot
 *   tail  (release)                →        tail  (acquire)   pairs: the device sees the slot's data
 * </pre>
 *
 * This class does not write {@code connFifo}, because on this side the kernel owns the entries (NVIDIA/nccl pull 2390).
 * Only the source of announced operations writes an entry, for modes OFFSET and PTR.
 */
public final class ReceiveProxy extends AbstractProxy {

    private final SendMem sendMem;
    private final RecvMem recvMem;
    private final FrameReceiver receiver;
    private final ReceiveStepSource source;
    private final StepWindow window = new StepWindow();
    /** Payloads that are checked again when the device has freed their slots; null if payloads are not checked. */
    private final @Nullable DeliveredSlots delivered;
    /** The device's head, as read in this pass. */
    private long head;
    /** First step after the newest accepted frame. */
    private long covered;

    ReceiveProxy(ConnectionName name, SendMem sendMem, RecvMem recvMem, FrameReceiver receiver,
            ReceiveStepSource source, ProxyConnection.StopListener listener) {
        super(name, listener);
        this.sendMem = sendMem;
        this.recvMem = recvMem;
        this.receiver = receiver;
        this.source = source;
        this.delivered = receiver instanceof CheckedReceiver checked ? new DeliveredSlots(checked.check()) : null;
        this.covered = sendMem.headAcquire();
    }

    /**
     * {@return a proxy for the announced operations of a connection} The connection has its own slots, or takes its
     * slots of protocol Simple from a pool. One agent must serve all connections of a pool.
     *
     * @param gathered slices that the device gathers from pages; null if it gathers none
     * @param share    the connection's share of the pool; null if the connection has its own slots
     * @param staging  region where lines arrive; its length is the sum of the lengths of the LL and LL128 buffers
     */
    public static ReceiveProxy sharing(SliceLists.@Nullable GatheredSlices gathered, SlotPool.@Nullable Share share,
            ConnectionName name, ConnectionInfo info, MemoryRegion memory, MemoryRegion staging, OperationQueue queue,
            FrameReceiver receiver, ProxyConnection.StopListener listener) {
        ReceiveStepSource source = new OperationReceiveSource(name, info, memory, staging,
                receiver.storesWholeWords(info.layout().slotBytes(Protocol.LL)), queue, share, gathered);
        return new ReceiveProxy(name, info.sendMem(), info.recvMem(), receiver, source, listener);
    }

    /**
     * {@return a proxy for a device whose operations are not announced} The peer's frames determine the steps. The
     * caller adds the proxy to an agent.
     *
     * @param staging region where lines arrive; its length is the sum of the lengths of the LL and LL128 buffers
     */
    public static ReceiveProxy byMemory(ConnectionName name, SlotBuffers buffers, MemoryRegion staging, long firstStep,
            FrameReceiver receiver, ProxyConnection.StopListener listener) {
        return byMemory(name, buffers, staging, firstStep, receiver, listener, UnaryOperator.identity());
    }

    /**
     * {@return a proxy for a device whose operations are not announced} Some frames may arrive outside of their slots.
     *
     * @param staging region where lines arrive; its length is the sum of the lengths of the LL and LL128 buffers
     * @param refined function that wraps the source of steps in slots. The source that it returns handles some frames
     *                itself and passes all other frames to the wrapped source.
     */
    public static ReceiveProxy byMemory(ConnectionName name, SlotBuffers buffers, MemoryRegion staging, long firstStep,
            FrameReceiver receiver, ProxyConnection.StopListener listener, UnaryOperator<ReceiveStepSource> refined) {
        ReceiveStepSource slots = new MemoryReceiveSource(name, buffers, staging,
                receiver.storesWholeWords(buffers.layout().slotBytes(Protocol.LL)), firstStep);
        return new ReceiveProxy(name, buffers.sendMem(), buffers.recvMem(), receiver, refined.apply(slots), listener);
    }

    @Override
    protected int pass() {
        int work = receiver.progress() + deliver();
        head = sendMem.headAcquire();
        if (!Steps.reached(head + ConnectionLayout.SLOTS, covered)) {
            throw new ProxyException(
                    name + ": the device's head is " + head + ", and it had freed the slots of all steps" + " before "
                            + (covered - ConnectionLayout.SLOTS) + ": another writer changed the counter");
        }
        if (delivered != null) {
            // After an abort a kernel continues to run. Its head may therefore move beyond steps whose payloads are
            // still arriving.
            boolean ranOn = !window.isEmpty() && !Steps.reached(window.oldestStep(), head);
            delivered.consumed(ranOn ? window.oldestStep() : head);
        }
        source.consumed(head);
        if (trace != null) {
            trace.consumed(head);
        }
        try {
            work += accept();
        } finally {
            // deliver() also runs after a PeerClosedException, because accept() may have accepted the final frames
            // before the exception.
            work += deliver();
        }
        return work;
    }

    /** Accepts the frames that have arrived, and assigns destinations to their payloads. */
    private int accept() {
        int accepted = 0;
        while (!window.isFull()) {
            FrameHeader header = receiver.poll();
            if (header == null) {
                break;
            }
            if (!source.admits(header) || !Steps.reached(head + ConnectionLayout.SLOTS, StepHeader.end(header))) {
                if (trace != null) {
                    trace.blocked(StepHeader.step(header));
                }
                break;
            }
            covered = StepHeader.end(header);
            window.add(StepHeader.step(header), covered);
            if (trace != null) {
                trace.taken(StepHeader.end(header), header.payloadBytes(), (int) StepHeader.protocol(header));
            }
            if (delivered != null) {
                delivered.add(header, source);
            }
            source.receive(receiver);
            source.taken();
            accepted++;
        }
        return accepted;
    }

    /** Notifies the device of the frames with completely received payloads. */
    private int deliver() {
        int delivered = 0;
        while (!window.isEmpty() && receiver.framesCompleted() - window.removed() > 0) {
            source.arrived();
            long end = window.oldestEnd();
            recvMem.tailRelease(end);
            window.removeOldest();
            if (trace != null) {
                trace.done(end);
            }
            delivered++;
        }
        return delivered;
    }

    @Override
    public boolean drained() {
        return window.isEmpty() && source.drained();
    }

    @Override
    public void stopped(@Nullable Throwable failure) {
        try {
            receiver.close();
        } finally {
            super.stopped(failure);
        }
    }

    @Override
    public String lastSeen() {
        return recvMem.describe(sendMem);
    }
}
