package org.millrace.gin;

import org.millrace.abi.GinOp;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.PeerClosedException;

/**
 * The connection to one peer, both ways. A descriptor is complete when its source was read: when its last frame was
 * sent, or its get was answered.
 */
final class PeerLane extends Lane {

    /** A copy from device to device needs no staging: it is as many chunks long as are worth their call. */
    private static final int DIRECT_CHUNKS = 16;

    private final FrameSender sender;
    private final OutgoingFrames frames;
    private final Gets gets = new Gets();
    private final Answers answers = new Answers();
    private final Arrivals arrivals;
    /** Where what this rank sends is staged; null if it travels as the payload of frames. */
    private StagingOut staging;
    /** How many of the peer's frames it was told that they were carried out. */
    private long toldSettled;
    private boolean sendingOver;
    private boolean receivingOver;

    PeerLane(GinCommunicator communicator, int peer, FrameSender sender, FrameReceiver receiver) {
        super(communicator, peer);
        this.sender = sender;
        frames = new OutgoingFrames(sender, communicator.options().depth());
        arrivals = new Arrivals(communicator, peer, receiver, gets, answers);
        Outgoing hello = frames.next();
        GinHeader.hello(hello.header, communicator.rank(), communicator.ranks(), communicator.options().chunkBytes());
        frames.add();
    }

    /** What the peer sends may be staged in a ring, from now on. */
    void stageIn(StagingRing ring) {
        arrivals.stage(ring);
    }

    /** What is sent to the peer is staged in a ring from now on: the peer knows it. */
    void stageOut(StagingRing ring) {
        staging = new StagingOut(ring, peer);
    }

    @Override
    int progress() {
        try {
            int work = send() + receive();
            if (arrivals.settled() != toldSettled) {
                tellSettled();
            }
            return work;
        } catch (ConnectionException lost) {
            throw new GinException(
                    "rank " + communicator.rank() + " lost rank " + peer + ": " + lost.getMessage() + underWay(), lost);
        }
    }

    @Override
    void tellSettled() {
        toldSettled = arrivals.settled();
        communicator.tellSettled(peer, toldSettled);
    }

    private int send() {
        if (sendingOver) {
            requireNothing();
            return 0;
        }
        try {
            int work = answer();
            work += pull();
            return work + frames.progress();
        } catch (PeerClosedException goodbye) {
            sendingOver = true; // what it sent before is still to be received
            return 1;
        }
    }

    private int receive() {
        if (receivingOver) {
            return arrivals.settle();
        }
        try {
            return arrivals.progress();
        } catch (PeerClosedException goodbye) {
            receivingOver = true;
            sendingOver = true;
            return 1;
        }
    }

    /** A peer that has left is missed only by those who want something of it. */
    private void requireNothing() {
        answers.abandon();
        if (frames.owesPeer() && frames.listen()) {
            return; // it had them perhaps, and said so on its way out
        }
        if (frames.owesPeer() || receivingOver && !gets.isEmpty() || isWanted()) {
            throw new GinException(
                    "rank " + communicator.rank() + ": rank " + peer + " has closed its end" + underWay());
        }
    }

    private String underWay() {
        String oldest = describeOldest();
        return oldest == null ? "; nothing was under way to it" : "; the oldest descriptor under way to it: " + oldest;
    }

    private int answer() {
        int work = 0;
        while (!answers.isEmpty() && !frames.isFull()
                && answers.begin(frames.next(), communicator.options().chunkBytes(), staging)) {
            frames.add();
            work++;
        }
        return work;
    }

    @Override
    boolean advance(PeerQueue queue) {
        if (frames.isFull()) {
            return false;
        }
        GinDescriptor descriptor = queue.current();
        if (descriptor.has(GinOp.GET)) {
            return get(queue);
        }
        if (descriptor.has(GinOp.FLUSH) || descriptor.size == 0 && !descriptor.signals()) {
            queue.complete(queue.finish()); // a get is complete only when its bytes are visible
            return true;
        }
        return put(queue);
    }

    private boolean get(PeerQueue queue) {
        GinDescriptor descriptor = queue.current();
        if (descriptor.size == 0) {
            queue.complete(queue.finish());
            return true;
        }
        Window direct = inReach(descriptor.sourceHandle);
        if (direct == null || isOutrun(queue)) {
            return ask(queue);
        }
        return isInTurn(queue) && fetch(queue, direct);
    }

    /** Whether a copy may outrun frames of its queue, and nobody would know. */
    private boolean isOutrun(PeerQueue queue) {
        return queue.hasWritten() && queue.context().reached(peer) == null;
    }

    /** Whether a copy finds there what frames of its queue were to write before it. */
    private boolean isInTurn(PeerQueue queue) {
        return !queue.hasWritten() || queue.isWritten(frames, queue.context().reached(peer));
    }

    private boolean ask(PeerQueue queue) {
        if (gets.isFull()) {
            return false;
        }
        GinDescriptor descriptor = queue.current();
        Window target = localWindow(queue, descriptor.targetHandle, descriptor.targetOffset, descriptor.size);
        Outgoing frame = frames.next();
        GinHeader.set(frame.header, GinHeader.GET, queue.context().number(), descriptor.sourceHandle,
                descriptor.sourceOffset, descriptor.size);
        frames.add();
        gets.add(queue, queue.finish(), target, descriptor.targetOffset, descriptor.size);
        return true;
    }

    /**
     * Copies bytes that the peer does not have to be asked for. The frame is none: it only waits for them, in its turn.
     */
    private boolean fetch(PeerQueue queue, Window source) {
        GinDescriptor descriptor = queue.current();
        requireThere(queue, source, descriptor.sourceOffset);
        Window target = localWindow(queue, descriptor.targetHandle, descriptor.targetOffset, descriptor.size);
        long bytes = Math.min(descriptor.size - queue.moved(), mostDirectly());
        Outgoing frame = frames.next();
        frame.open = source.beginPeerRead(frame.transfer, peer, descriptor.sourceOffset + queue.moved(), target,
                descriptor.targetOffset + queue.moved(), bytes);
        if (!frame.open) {
            return false;
        }
        frame.bringsNothing(queue.context());
        if (queue.moved() + bytes < descriptor.size) {
            queue.advance(bytes);
        } else {
            frame.queue = queue;
            frame.index = queue.finish();
        }
        frames.add();
        return true;
    }

    private boolean put(PeerQueue queue) {
        GinDescriptor descriptor = queue.current();
        int context = queue.context().number();
        Window direct =
                descriptor.has(GinOp.PUT) && !descriptor.has(GinOp.INLINE) ? inReach(descriptor.targetHandle) : null;
        if (direct != null && descriptor.size > 0) {
            if (isOutrun(queue)) {
                direct = null; // frames keep their order
            } else if (!isInTurn(queue)) {
                return false;
            }
        }
        long bytes = Math.min(descriptor.size - queue.moved(), mostAtOnce(descriptor, direct));
        boolean writes = direct == null && (bytes > 0 || descriptor.has(GinOp.VA_SIGNAL));
        Outgoing frame = frames.next();
        if (descriptor.has(GinOp.VA_SIGNAL)) {
            GinHeader.set(frame.header, GinHeader.VA_SIGNAL, context, descriptor.sourceHandle, descriptor.sourceOffset,
                    0);
        } else {
            GinHeader.set(frame.header, GinHeader.PUT, context, descriptor.targetHandle,
                    descriptor.targetOffset + queue.moved(), 0);
            if (descriptor.has(GinOp.INLINE)) {
                GinHeader.inline(frame.header, descriptor.size, descriptor.inlineValue);
            } else if (bytes > 0 && !(direct == null ? read(queue, frame, bytes) : copy(queue, frame, direct, bytes))) {
                return false;
            }
        }
        if (direct != null || descriptor.size == 0 && descriptor.has(GinOp.PUT)) { // its bytes get there without the
                                                                                   // frame
            frame.bringsSignalAtMost(queue.context(), peer);
        }
        if (queue.moved() + bytes < descriptor.size) {
            queue.advance(bytes);
        } else {
            if (descriptor.signals()) {
                GinHeader.signal(frame.header, descriptor.signal, descriptor.signalValue);
            }
            frame.queue = queue;
            frame.index = queue.finish();
        }
        long number = frames.add();
        if (writes) {
            queue.wrote(number);
        }
        return true;
    }

    private long mostAtOnce(GinDescriptor descriptor, Window direct) {
        if (direct != null) {
            return mostDirectly();
        }
        long chunk = communicator.options().chunkBytes();
        return staging == null ? chunk : StagingRing.piece(descriptor.size, chunk);
    }

    private long mostDirectly() {
        return DIRECT_CHUNKS * communicator.options().chunkBytes();
    }

    private boolean read(PeerQueue queue, Outgoing frame, long bytes) {
        GinDescriptor descriptor = queue.current();
        Window source = localWindow(queue, descriptor.sourceHandle, descriptor.sourceOffset, descriptor.size);
        return frame.begin(staging, source, descriptor.sourceOffset + queue.moved(), bytes);
    }

    /** The window of a handle, if this rank's device reads and writes it by itself at the peer, or null. */
    private Window inReach(long handle) {
        Window window = communicator.windows().find(handle);
        return window != null && window.memory().reach(peer) > 0 ? window : null;
    }

    private void requireThere(PeerQueue queue, Window window, long offset) {
        long there = window.memory().reach(peer);
        long size = queue.current().size;
        if (offset < 0 || offset > there - size) {
            throw refused(queue, size + " bytes at " + offset + " are not within " + window + ", which has " + there
                    + " bytes at rank " + peer);
        }
    }

    /** The bytes go to the peer's memory at once; whatever comes behind them waits until they are there. */
    private boolean copy(PeerQueue queue, Outgoing frame, Window target, long bytes) {
        GinDescriptor descriptor = queue.current();
        requireThere(queue, target, descriptor.targetOffset);
        Window source = localWindow(queue, descriptor.sourceHandle, descriptor.sourceOffset, descriptor.size);
        frame.open = target.beginPeerCopy(frame.transfer, peer, descriptor.targetOffset + queue.moved(), source,
                descriptor.sourceOffset + queue.moved(), bytes);
        return frame.open;
    }

    @Override
    String describeArrivals() {
        return arrivals.isSettled() ? null
                : "bytes or signals that rank " + peer + " has sent, which have not got to this rank's memory";
    }

    @Override
    boolean isDrained() {
        return arrivals.isSettled()
                && (sendingOver || frames.isEmpty() && gets.isEmpty() && answers.isEmpty() && !isWanted());
    }

    @Override
    void close(boolean failed) {
        try {
            if (failed) {
                sender.abort();
            } else {
                sender.close();
            }
        } finally {
            arrivals.close();
        }
        frames.abandon(); // behind both ends: where one could not be closed, its network may still use what was staged
        arrivals.abandon();
    }
}
