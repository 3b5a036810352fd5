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
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyException;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.proxy.spi.Steps;

/**
 * Source of steps to send, for announced operations. The operation determines the protocol and the location of the
 * data: the connection's own slots (mode NORMAL), slots of the channel's pool (OFFSET), or the user's memory (PTR).
 */
final class OperationSendSource extends SendStepSource {

    private final ConnectionName name;
    private final ConnectionLayout layout;
    private final OperationQueue steps;
    private final SendMem sendMem;
    private final RecvMem recvMem;
    private final MemoryRegion memory;
    private final LineFlags flags;
    /** Grants credits to the device, each with a slot of the pool; null if the connection has its own slots. */
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
     * Checks the next step of protocol LL, which does not use tail. The device stores the step's size when it has the
     * credit for the slot. Before the device has the credit, the slot's size belongs to an earlier step, which may
     * still be in flight.
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

    /**
     * Checks the next step of protocol LL128. On some GPUs tail may become visible before the lines, so the flags of
     * the lines are checked, too.
     */
    private boolean nextLL128() {
        if (!Steps.reached(tail(), end)) {
            return false;
        }
        size = recvMem.sizePlain(ConnectionLayout.slot(step));
        requireSize(size % LL128Line.BYTES == 0 && size <= layout.slotBytes(Protocol.LL128),
                layout.slotBytes(Protocol.LL128));
        return flags.ll128Ready(step, size);
    }

    /**
     * Returns tail, and checks that the device has credits for all steps before tail. The acquire pairs with the
     * device's release of tail, so that sizes and data of the posted steps are visible.
     */
    private long tail() {
        long tail = recvMem.tailAcquire();
        if (!Steps.reached(sendMem.headPlain() + ConnectionLayout.SLOTS, tail)) {
            throw new ProxyException(name + ": the device's tail is " + tail + ", and its credits end at step "
                    + (sendMem.headPlain() + ConnectionLayout.SLOTS) + ": another writer changed the counter");
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
        // The frame also covers the empty slices that follow the slice, because they have no data. A frame covers at
        // most a chunk, so that it does not occupy the peer's slots for a long time.
        while (end != steps.last() && end - step < op.chunkSteps() && Steps.reached(tail, end + op.sliceSteps())
                && recvMem.sizePlain(ConnectionLayout.slot(end)) == 0) {
            end += op.sliceSteps();
        }
        return true;
    }

    private void requireSize(boolean fits, long room) {
        if (size < 0 || !fits) {
            throw new ProxyException(name + ", step " + step + ": the device posted a size of " + size + " bytes; "
                    + "a slice of " + op.protocol() + " holds 0 to " + room
                    + (op.protocol() == Protocol.SIMPLE ? "" : ", in whole lines"));
        }
    }

    /** Determines the location of the step's data. */
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

    /** {@inheritDoc} Without the peer, an announced operation cannot complete. */
    @Override
    boolean continuesWithoutPeer() {
        return false;
    }

    @Override
    boolean drained() {
        return steps.drained();
    }

    /**
     * Grants slots of the pool to the device of a connection without own slots (mode OFFSET). As with its own slots,
     * the device waits until {@code head + 8 ≥ step + steps}. The proxy advances {@code head} past a step when the pool
     * has a slot for the step and the slot's offset is stored.
     *
     * <pre>
     *   this proxy                                     device
     *   connFifo[step % 8].offset = slot of the pool
     *   head = step + 1 - 8 (release)            →     head (acquire)    pairs: the device sees the offset
     * </pre>
     *
     * Steps of LL and LL128, and steps with data in the user's memory, need no slot of the pool.
     */
    private static final class Credits {

        private final SendMem sendMem;
        private final RecvMem recvMem;
        private final SlotPool.Share share;
        private final int[] offsets = new int[ConnectionLayout.SLOTS];
        /** First step that is not granted to the device. */
        private long granted;
        /** First step without a sent frame. */
        private long released;

        Credits(SendMem sendMem, RecvMem recvMem, SlotPool.Share share, long firstStep) {
            this.sendMem = sendMem;
            this.recvMem = recvMem;
            this.share = share;
            this.granted = firstStep;
            this.released = firstStep;
        }

        /**
         * Grants steps of an operation, until a step finds no slot in the pool, or {@link ConnectionLayout#SLOTS}
         * granted steps have no sent frame.
         *
         * @param step next step of the operation
         * @param last first step after the operation
         */
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

        /**
         * Skips the steps before the first step of an operation, which is rounded up to a multiple of the steps per
         * chunk. The skipped steps belong to no operation and have no slot.
         */
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

        /** Returns the slots of all steps before {@code end} to the pool, because their frames were sent. */
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
