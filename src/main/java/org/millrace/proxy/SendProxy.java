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

/**
 * The sending side. The steps that the device posted are sent to the network. A slot returns to the device when the
 * network has read it.
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
     * Shutdown of a peer that this side owed no data; null before it. After it, no frame is offered to the network end.
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

    /** {@return a proxy of a connection with its own slots, for announced operations, to be added to an agent} */
    public static SendProxy byOperation(ConnectionName name, ConnectionInfo info, MemoryRegion memory,
            OperationQueue queue, FrameSender sender, ProxyConnection.StopListener listener) {
        return sharing(null, name, info, memory, queue, sender, listener);
    }

    /**
     * {@return a proxy of a connection that takes its slots of protocol Simple from a pool, for announced operations}
     * The proxy must be added to the agent of all connections of the pool.
     *
     * @param share the connection's share of the pool; null if the connection has its own slots
     */
    public static SendProxy sharing(SlotPool.@Nullable Share share, ConnectionName name, ConnectionInfo info,
            MemoryRegion memory, OperationQueue queue, FrameSender sender, ProxyConnection.StopListener listener) {
        return new SendProxy(name, info.sendMem(), info.recvMem(), sender,
                new OperationSendSource(name, info, memory, queue, share), listener);
    }

    /**
     * {@return a proxy that finds the steps in the shared memory, for a device without announced operations, to be
     * added to an agent}
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
                // a peer's shutdown message may be thrown in the same pass that completed the last frames
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
     * Returns the credits of steps without data after the peer has left. The peer needed none of these steps, but a
     * device may wait for its last credits. A step with data is owed, and fails the connection.
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

    /** Offers the steps that the device posted to the network. */
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

    /** Returns the slots of completed frames to the device. */
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
            // pairs with a device that waits until its memory was read
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
        // The source is asked in any case, because it may detect that there is nothing to wait for.
        boolean nothingFollows = source.drained();
        if (nothingFollows && !window.isEmpty() && !isAborted()) {
            sender.settle(); // the memory is about to be freed, and the peer may read its data later
        }
        return nothingFollows && window.isEmpty();
    }

    /**
     * A peer waits for data and for tail. It does not wait for an LL step without data, so it may have closed before
     * that step is even posted.
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
                // The peer must see that this end did not close in order, and operands may already be freed.
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
