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

/**
 * The receiving side: a frame goes into its slot as soon as the device has emptied it, and the device is told when the
 * frame is there.
 *
 * <pre>
 *   this proxy                               device
 *   head  (acquire)                ←        head  (release)   pairs: the device has read the slot before it is
 *                                                             written again
 *   frame → slot
 *   tail  (release)                →        tail  (acquire)   pairs: the device sees the slot's data
 * </pre>
 *
 * {@code connFifo} is not touched: on this side its flags are the kernel's (NVIDIA/nccl pull 2390).
 */
public final class ReceiveProxy extends AbstractProxy {

    private final SendMem sendMem;
    private final RecvMem recvMem;
    private final FrameReceiver receiver;
    private final ReceiveStepSource source;
    private final StepWindow window = new StepWindow();
    /** As it was at the beginning of this pass. */
    private long head;
    /** Where the last frame ends that was given a slot. */
    private long covered;

    ReceiveProxy(ConnectionName name, SendMem sendMem, RecvMem recvMem, FrameReceiver receiver,
            ReceiveStepSource source, ProxyConnection.StopListener listener) {
        super(name, listener);
        this.sendMem = sendMem;
        this.recvMem = recvMem;
        this.receiver = receiver;
        this.source = source;
        this.covered = sendMem.headAcquire();
    }

    /**
     * {@return a proxy that is told its operations, of a connection with slots of its own, to be added to an agent}
     *
     * @param staging as long as the buffers of LL and LL128 together: where their lines arrive
     */
    public static ReceiveProxy byOperation(ConnectionName name, ConnectionInfo info, MemoryRegion memory,
            MemoryRegion staging, OperationQueue queue, FrameReceiver receiver, ProxyConnection.StopListener listener) {
        return sharing(null, null, name, info, memory, staging, queue, receiver, listener);
    }

    /**
     * {@return a proxy that is told its operations, of a connection that takes its slots of protocol Simple from a
     * pool, to be added to the agent of all connections of the pool}
     *
     * @param gathered where slices arrive that the device gathers; null if none do
     * @param share    what it takes them with; null if it has its own
     * @param staging  as long as the buffers of LL and LL128 together: where their lines arrive
     */
    public static ReceiveProxy sharing(SliceLists.@Nullable GatheredSlices gathered, SlotPool.@Nullable Share share,
            ConnectionName name, ConnectionInfo info, MemoryRegion memory, MemoryRegion staging, OperationQueue queue,
            FrameReceiver receiver, ProxyConnection.StopListener listener) {
        ReceiveStepSource source = new OperationReceiveSource(name, info, memory, staging,
                receiver.storesWholeWords(info.layout().slotBytes(Protocol.LL)), queue, share, gathered);
        return new ReceiveProxy(name, info.sendMem(), info.recvMem(), receiver, source, listener);
    }

    /**
     * {@return a proxy that goes by the peer's frames, for a device whose operations nobody announces, to be added to
     * an agent}
     *
     * @param staging as long as the LL and the LL128 buffer together
     */
    public static ReceiveProxy byMemory(ConnectionName name, SlotBuffers buffers, MemoryRegion staging, long firstStep,
            FrameReceiver receiver, ProxyConnection.StopListener listener) {
        return byMemory(name, buffers, staging, firstStep, receiver, listener, UnaryOperator.identity());
    }

    /**
     * {@return a proxy as that of the other method, for a device that wants some frames elsewhere than in their slots}
     *
     * @param staging as long as the LL and the LL128 buffer together
     * @param refined what stands before the source of steps in slots, and leaves to it what it does not do itself
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
                            + (covered - ConnectionLayout.SLOTS) + ": something else has written there");
        }
        source.consumed(head);
        if (trace != null) {
            trace.consumed(head);
        }
        try {
            work += accept();
        } finally {
            work += deliver(); // a peer's shutdown message may be thrown in the very pass that accepted its last frames
        }
        return work;
    }

    /** Gives arriving frames their slots. */
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
            source.receive(receiver);
            source.taken();
            accepted++;
        }
        return accepted;
    }

    /** Tells the device of frames that have arrived whole. */
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
        receiver.close();
        super.stopped(failure);
    }

    @Override
    public String lastSeen() {
        return recvMem.describe(sendMem);
    }
}
