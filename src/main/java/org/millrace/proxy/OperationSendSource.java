package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;

/**
 * Steps to send by operation. The operation says the protocol and whose memory the data is in: the connection's own
 * slots (mode NORMAL), slots of the channel's pool (OFFSET), or the user's (PTR).
 */
final class OperationSendSource extends SendStepSource {

    private final ConnectionName name;
    private final ConnectionLayout layout;
    private final OperationQueue steps;
    private final SendMem sendMem;
    private final RecvMem recvMem;
    private final MemoryRegion memory;
    private final LineFlags flags;
    /** Null if the connection has slots of its own. */
    private final @Nullable Credits credits;
    private final long simpleSlotBytes;
    private @Nullable ProxyOp op;

    OperationSendSource(ConnectionName name, ConnectionInfo info, MemoryRegion memory, OperationQueue queue,
            SlotPool.@Nullable Share share) {
        this.name = name;
        this.layout = info.layout();
        this.steps = queue;
        queue.beginAt(info.firstStep());
        this.sendMem = info.sendMem();
        this.recvMem = info.recvMem();
        this.memory = memory;
        this.flags = new LineFlags(layout, memory.segment());
        this.credits = share == null ? null : new Credits(sendMem, recvMem, share, info.firstStep());
        this.simpleSlotBytes = info.slotBytes(Protocol.SIMPLE);
    }

    @Override
    boolean next() {
        op = steps.op();
        if (op == null) {
            return false;
        }
        step = steps.step();
        end = step + op.sliceSteps();
        if (credits != null) {
            credits.grant(op, step, steps.last());
        }
        boolean posted = switch (op.protocol()) {
            case LL -> nextLL();
            case LL128 -> nextLL128();
            case SIMPLE -> nextSimple();
        };
        if (posted) {
            place();
        }
        return posted;
    }

    /**
     * LL has no tail. The device says the size as soon as it may use the slot: until then the slot's size is that of a
     * step before, which may still be on its way.
     */
    private boolean nextLL() {
        if (!Steps.reached(sendMem.headPlain() + ConnectionLayout.SLOTS, end)) {
            return false;
        }
        size = recvMem.sizeAcquire(ConnectionLayout.slot(step));
        if (size == RecvMem.EMPTY) {
            return false;
        }
        requireSize(size % LLLine.BYTES == 0 && size <= layout.slotBytes(Protocol.LL), layout.slotBytes(Protocol.LL));
        return flags.llReady(step, size);
    }

    /** On some GPUs tail may overtake the lines: their flags are looked at, too. */
    private boolean nextLL128() {
        if (!Steps.reached(tail(), end)) {
            return false;
        }
        size = recvMem.sizePlain(ConnectionLayout.slot(step));
        requireSize(size % LL128Line.BYTES == 0 && size <= layout.slotBytes(Protocol.LL128),
                layout.slotBytes(Protocol.LL128));
        return flags.ll128Ready(step, size);
    }

    /** The acquire pairs with the device's release: size and data are there. Without credit it posts no step. */
    private long tail() {
        long tail = recvMem.tailAcquire();
        if (!Steps.reached(sendMem.headPlain() + ConnectionLayout.SLOTS, tail)) {
            throw new ProxyException(name + ": the device's tail is " + tail + ", and its credits end at step "
                    + (sendMem.headPlain() + ConnectionLayout.SLOTS) + ": something else has written there");
        }
        return tail;
    }

    private boolean nextSimple() {
        long tail = tail();
        if (!Steps.reached(tail, end)) {
            return false;
        }
        size = recvMem.sizePlain(ConnectionLayout.slot(step));
        long room = op.user() == null ? op.sliceSteps() * simpleSlotBytes : op.user().segment().byteSize();
        requireSize(size <= room, room);
        // Empty slices ride along with the one before: they carry nothing but their steps. A chunk is the limit,
        // so that the peer's slots are not held up for long.
        while (end != steps.last() && end - step < op.chunkSteps() && Steps.reached(tail, end + op.sliceSteps())
                && recvMem.sizePlain(ConnectionLayout.slot(end)) == 0) {
            end += op.sliceSteps();
        }
        return true;
    }

    private void requireSize(boolean fits, long room) {
        if (size < 0 || !fits) {
            throw new ProxyException(name + ", step " + step + ": the device says a size of " + size + " bytes; "
                    + "a slice of " + op.protocol() + " holds 0 to " + room
                    + (op.protocol() == Protocol.SIMPLE ? "" : ", in whole lines"));
        }
    }

    /** Finds the step's data. */
    private void place() {
        if (op.user() != null) {
            region = op.user();
            offset = op.offset(name, step, recvMem.ptrPlain(ConnectionLayout.slot(step)), size);
        } else if (credits != null && op.protocol() == Protocol.SIMPLE) {
            region = credits.pool().memory();
            offset = credits.offset(step);
        } else {
            region = memory;
            offset = layout.slotOffset(op.protocol(), step);
        }
    }

    @Override
    int protocol() {
        return op.protocol().id();
    }

    @Override
    void describe(FrameHeader header) {
        StepHeader.operation(header, op);
    }

    @Override
    void taken() {
        steps.advance(end);
    }

    @Override
    void released(long endStep) {
        if (credits == null) {
            sendMem.headRelease(endStep);
        } else {
            credits.release(endStep);
        }
    }

    @Override
    boolean drained() {
        return steps.drained();
    }

    /**
     * Lets a device use the slots of a connection that has none of its own (mode OFFSET). The device waits as ever
     * until {@code head + 8 ≥ step + steps}; here {@code head} is moved ahead, step by step, each time a slot of the
     * pool is there for the step and its place is said:
     *
     * <pre>
     *   this proxy                                     device
     *   connFifo[step % 8].offset = slot of the pool
     *   head = step + 1 - 8 (release)            →     head (acquire)    pairs: the device sees the offset
     * </pre>
     *
     * Steps of LL and LL128, and those whose data is in the user's memory, are granted without a slot.
     */
    private static final class Credits {

        private final SendMem sendMem;
        private final RecvMem recvMem;
        private final SlotPool.Share share;
        private final int[] offsets = new int[ConnectionLayout.SLOTS];
        /** First step that the device may not use yet. */
        private long granted;
        /** First step that is not sent. */
        private long released;

        Credits(SendMem sendMem, RecvMem recvMem, SlotPool.Share share, long firstStep) {
            this.sendMem = sendMem;
            this.recvMem = recvMem;
            this.share = share;
            this.granted = firstStep;
            this.released = firstStep;
        }

        /** Grants what can be granted of an operation that goes on at a step and ends before another. */
        void grant(ProxyOp op, long step, long last) {
            if (!Steps.reached(granted, step)) {
                skipTo(step);
            }
            boolean needsSlot = op.protocol() == Protocol.SIMPLE && op.user() == null;
            long before = granted;
            while (granted != last && granted - released < ConnectionLayout.SLOTS) {
                int offset = needsSlot ? share.take() : SlotPool.NONE;
                if (needsSlot && offset == SlotPool.NONE) {
                    break;
                }
                int slot = ConnectionLayout.slot(granted);
                offsets[slot] = offset;
                recvMem.offsetPlain(slot, offset);
                granted++;
            }
            if (granted != before) {
                sendMem.headRelease(granted - ConnectionLayout.SLOTS);
            }
        }

        /** An operation's first step was rounded up: the steps before it are nobody's. */
        private void skipTo(long step) {
            if (released == granted) {
                released = step;
            }
            while (granted != step) {
                offsets[ConnectionLayout.slot(granted++)] = SlotPool.NONE;
            }
        }

        int offset(long step) {
            return offsets[ConnectionLayout.slot(step)];
        }

        /** A frame was sent. */
        void release(long end) {
            while (released != end) {
                int offset = offsets[ConnectionLayout.slot(released++)];
                if (offset != SlotPool.NONE) {
                    share.give(offset);
                }
            }
        }

        SlotPool pool() {
            return share.pool();
        }
    }
}
