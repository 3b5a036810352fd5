package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;

/**
 * The proxy of the sending side. It sends the steps that the device has posted. It returns a slot to the device when
 * the network has read the slot.
 *
 * <pre>
 *   device                          this proxy
 *   size  → connFifo[slot]         tail   (acquire)   pairs with the device's release of tail
 *   data  → slot                   size, data → frame
 *   tail  → (release)              ... the frame is complete
 *                                   size = -1
 *   head  (acquire)       ←        head   (release)   pairs with the device's acquire of head: it sees size = -1
 *                                                     and may write the slot
 * </pre>
 */
public final class SendProxy extends AbstractProxy {

    private final SendMem sendMem;
    private final RecvMem recvMem;
    private final FrameSender sender;
    private final SendStepSource source;
    private final FrameHeader header = new FrameHeader();
    private final StepWindow window = new StepWindow();
    /**
     * Exception that the sender threw because the peer has closed the connection; null until then. The field is always
     * null if the source cannot continue without the peer. If this field is set, no frame is offered to the sender. The
     * proxy then stops with this exception as soon as a posted step has data, because the peer needs that data.
     */
    private @Nullable PeerClosedException peerClosed;

    SendProxy(ConnectionName name, SendMem sendMem, RecvMem recvMem, FrameSender sender, SendStepSource source,
            ProxyConnection.StopListener listener) {
        super(name, listener);
        this.sendMem = sendMem;
        this.recvMem = recvMem;
        this.sender = sender;
        this.source = source;
    }

    /**
     * {@return a connection's proxy for announced operations} The connection may take its slots for protocol Simple
     * from a pool. One agent must serve all connections of a pool.
     *
     * @param share the connection's share of the pool; null if the connection has its own slots
     */
    public static SendProxy sharing(SlotPool.@Nullable Share share, ConnectionName name, ConnectionInfo info,
            MemoryRegion memory, OperationQueue queue, FrameSender sender, ProxyConnection.StopListener listener) {
        return new SendProxy(name, info.sendMem(), info.recvMem(), sender,
                new OperationSendSource(name, info, memory, queue, share), listener);
    }

    /**
     * {@return a proxy for a device whose operations are not announced} The proxy finds the steps in the shared memory.
     * The caller adds the proxy to an agent.
     */
    public static SendProxy byMemory(ConnectionName name, SlotBuffers buffers, long firstStep, FrameSender sender,
            ProxyConnection.StopListener listener) {
        SendStepSource source = new MemorySendSource(name, buffers, firstStep);
        return new SendProxy(name, buffers.sendMem(), buffers.recvMem(), sender, source, listener);
    }

    @Override
    protected int pass() {
        PeerClosedException closed = peerClosed;
        if (closed != null) {
            return discard(closed);
        }
        try {
            int work = post();
            try {
                work += sender.progress();
            } finally {
                // release() also runs after a PeerClosedException, because the network may have completed the final
                // frames before it detected the close.
                work += release();
            }
            return work;
        } catch (PeerClosedException shutdown) {
            if (!source.continuesWithoutPeer()) {
                throw shutdown;
            }
            peerClosed = shutdown;
            return discard(shutdown);
        }
    }

    /**
     * Returns to the device the credits of posted steps without data, after the peer has closed the connection. The
     * peer needs no steps without data, but the device may wait for its last credits. Throws {@code closed} if a posted
     * step has data, because the peer needs this data.
     */
    private int discard(PeerClosedException closed) {
        if (owesData()) {
            throw closed;
        }
        int returned = 0;
        for (; !window.isEmpty(); returned++) {
            returnOldest();
        }
        for (; source.next() && source.size == 0; returned++) {
            window.add(source.step, source.end);
            source.taken();
            returnOldest();
        }
        return returned;
    }

    /** Offers to the network the steps that the device has posted. */
    private int post() {
        int posted = 0;
        while (!window.isFull() && source.next()) {
            StepHeader.step(header, source.step, source.end, source.protocol());
            source.describe(header);
            header.payloadBytes(source.size);
            if (!sender.offer(header, source.region, source.offset)) {
                if (trace != null) {
                    trace.blocked(source.step);
                }
                break;
            }
            window.add(source.step, source.end);
            if (trace != null) {
                trace.taken(source.end, source.size, source.protocol());
            }
            source.taken();
            posted++;
        }
        return posted;
    }

    private int release() {
        int released = 0;
        while (!window.isEmpty() && sender.framesCompleted() - window.removed() > 0) {
            returnOldest();
            released++;
        }
        return released;
    }

    private void returnOldest() {
        long end = window.oldestEnd();
        for (long step = window.oldestStep(); step != end; step++) {
            // This release pairs with the acquire of a device that waits until the network has read the step's data.
            recvMem.sizeRelease(ConnectionLayout.slot(step), RecvMem.EMPTY);
        }
        source.released(end);
        if (trace != null) {
            trace.done(end);
        }
        window.removeOldest();
    }

    @Override
    public boolean drained() {
        // Calls the source even if frames are in flight, because this call may detect an abort of the device.
        return source.drained() && window.isEmpty();
    }

    /** {@inheritDoc} Necessary because the peer may not have read the data of sent steps yet. */
    @Override
    public void settle() {
        if (source.drained() && !isAborted()) {
            sender.settle();
        }
    }

    /**
     * {@inheritDoc} The peer waits for steps with data. The peer does not wait for an LL step without data, and may
     * close the connection before the device posts that step.
     */
    @Override
    public boolean owesData() {
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            if (recvMem.sizeAcquire(slot) > 0) {
                return true;
            }
        }
        return false;
    }

    @Override
    public void stopped(@Nullable Throwable failure) {
        try {
            if (failure == null && !isAborted()) {
                sender.close();
            } else {
                // No frame may be sent, because operands may already be freed. The peer must detect the failure.
                sender.abort();
            }
        } finally {
            super.stopped(failure);
        }
    }

    @Override
    public String lastSeen() {
        return recvMem.describe(sendMem);
    }
}
