package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;

/**
 * Steps to receive by operation. A peer that runs another operation is found out at its first frame. The payload goes
 * into the connection's own slot (mode NORMAL), into one of the channel's pool (OFFSET), or straight into the user's
 * memory (PTR); lines go by way of a {@link ArrivingFrames}.
 */
final class OperationReceiveSource implements ReceiveStepSource {

    private final ConnectionName name;
    private final ConnectionLayout layout;
    private final OperationQueue steps;
    private final RecvMem recvMem;
    private final ArrivingFrames arriving;
    /** Null if the connection has slots of its own. */
    private final @Nullable Slots shared;
    private final long simpleSlotBytes;
    /** Null if the device gathers nothing. */
    private final SliceLists.@Nullable GatheredSlices gathered;
    /** Which frames under way the device gathers. */
    private final boolean[] gathers = new boolean[ConnectionLayout.SLOTS];
    private long taken;
    private long arrived;
    /** Slices of protocol Simple that the device has counted by the next step. */
    private long slices;
    private @Nullable ProxyOp op;
    private MemoryRegion region;
    private long offset;
    private long end;
    private long size;

    OperationReceiveSource(ConnectionName name, ConnectionInfo info, MemoryRegion memory, MemoryRegion staging,
            boolean wholeWords, OperationQueue queue, SlotPool.@Nullable Share share,
            SliceLists.@Nullable GatheredSlices gathered) {
        this.name = name;
        this.layout = info.layout();
        this.steps = queue;
        queue.beginAt(info.firstStep());
        this.recvMem = info.recvMem();
        this.arriving = new ArrivingFrames(SlotBuffers.inOne(layout, memory), staging, wholeWords);
        this.shared = share == null ? null : new Slots(recvMem, share);
        this.gathered = gathered;
        this.simpleSlotBytes = info.slotBytes(Protocol.SIMPLE);
    }

    @Override
    public boolean admits(FrameHeader header) {
        ProxyOp without = steps.without();
        op = steps.op();
        if (op == null && (without == null || StepHeader.isAfter(header, without))) {
            return false; // the peer is ahead: it waits until this rank's program reaches the operation
        }
        if (op == null) {
            op = without; // this rank was there, and called something else
        }
        if (!StepHeader.isOf(header, op) || op.steps() == 0) {
            throw new ProxyException.DisagreementException(name, op.collective(),
                    name + ": the ranks disagree: " + name.self() + " runs "
                            + OperationSignature.describe(op.signature(), op.opCount(), op.count()) + "; " + name.peer()
                            + " runs " + StepHeader.describeOperation(header)
                            + ". All ranks must call the same operations in the same order.");
        }
        end = StepHeader.end(header);
        size = header.payloadBytes();
        long covered = end - steps.step();
        boolean inSequence = StepHeader.step(header) == steps.step() && covered >= op.sliceSteps()
                && covered <= op.chunkSteps() && steps.last() - end >= 0;
        if (!inSequence || StepHeader.protocol(header) != op.protocol().id() || size > room()) {
            throw new ProxyException(name + ": unexpected frame: steps " + StepHeader.step(header) + " to " + end
                    + ", protocol " + StepHeader.protocol(header) + ", " + size + " bytes; expected step "
                    + steps.step() + " to at most " + steps.last() + ", protocol " + op.protocol().id() + ", at most "
                    + room() + " bytes");
        }
        return place();
    }

    private long room() {
        if (op.protocol() != Protocol.SIMPLE) {
            return layout.slotBytes(op.protocol());
        }
        return op.user() == null ? op.sliceSteps() * simpleSlotBytes : op.user().segment().byteSize();
    }

    /** Finds where the payload goes; false if that cannot be told yet. */
    private boolean place() {
        if (op.user() != null) {
            int slot = ConnectionLayout.slot(steps.step());
            region = op.user();
            offset = 0;
            if (size == 0) {
                return true; // the device offers no place for nothing
            }
            long offered = recvMem.sizeAcquire(slot); // pairs with the device's release: it sees ptr
            if (offered == RecvMem.EMPTY) {
                return false; // the kernel has not begun: the user's memory is still the user's
            }
            if (size > offered) {
                throw new ProxyException(name + ", step " + steps.step() + ": " + name.peer() + " sends " + size
                        + " bytes where the device has room for " + offered);
            }
            offset = op.offset(name, steps.step(), recvMem.ptrPlain(slot), size);
        } else if (shared != null && op.protocol() == Protocol.SIMPLE) {
            region = shared.memory();
            offset = size == 0 ? 0 : shared.reserve();
            return offset != SlotPool.NONE;
        } else {
            region = arriving.region(op.protocol());
            offset = layout.slotOffset(op.protocol(), steps.step());
        }
        return true;
    }

    @Override
    public void receive(FrameReceiver receiver) {
        if (isGathered()) {
            gathered.receive(receiver, slices, steps.step(), size);
        } else {
            receiver.accept(region, offset);
        }
    }

    /** What arrives in the user's memory is where it belongs; a device does not count it. */
    private boolean isCounted() {
        return gathered != null && op.protocol() == Protocol.SIMPLE && op.user() == null;
    }

    private boolean isGathered() {
        return isCounted() && gathered.takes(size);
    }

    @Override
    public void taken() {
        long step = steps.step();
        if (op.user() != null && size > 0) {
            // The device's offer is used up; tail publishes it, and only behind tail it makes another.
            recvMem.sizePlain(ConnectionLayout.slot(step), RecvMem.EMPTY);
        } else if (shared != null && op.protocol() == Protocol.SIMPLE && size > 0) {
            shared.taken(step);
        }
        boolean inPages = isGathered();
        gathers[ConnectionLayout.slot(taken++)] = inPages;
        arriving.taken(op.protocol(), op.protocol() == Protocol.SIMPLE && size > 0 && !inPages ? region : null, offset,
                size);
        if (isCounted()) {
            slices += (end - step) / op.sliceSteps(); // empty ones behind the data come with it
        }
        steps.advance(end);
    }

    @Override
    public void arrived() {
        arriving.arrived();
        if (gathers[ConnectionLayout.slot(arrived++)]) {
            gathered.arrived();
        }
    }

    @Override
    public void consumed(long head) {
        steps.requireAnnounced(name, head);
        if (shared != null) {
            shared.consumed(head);
        }
    }

    @Override
    public boolean drained() {
        return steps.drained() && (shared == null || shared.isEmpty());
    }

    /**
     * The slots of a pool that one connection's frames arrive in (mode OFFSET): taken when a frame comes, said to the
     * device before tail, given back when the device has moved its head past the step.
     */
    private static final class Slots {

        private final RecvMem recvMem;
        private final SlotPool.Share share;
        private final int[] offsets = new int[ConnectionLayout.SLOTS];
        private final long[] steps = new long[ConnectionLayout.SLOTS];
        private long taken;
        private long given;
        /** Of a frame that was looked at and perhaps not taken yet. */
        private int reserved = SlotPool.NONE;

        Slots(RecvMem recvMem, SlotPool.Share share) {
            this.recvMem = recvMem;
            this.share = share;
        }

        MemoryRegion memory() {
            return share.pool().memory();
        }

        /** A slot for the next frame, the same until it is taken; {@link SlotPool#NONE} if there is none. */
        int reserve() {
            if (reserved == SlotPool.NONE && taken - given < ConnectionLayout.SLOTS) {
                reserved = share.take();
            }
            return reserved;
        }

        /**
         * The frame of a step is being received into the reserved slot. Its {@code connFifo} entry is free: the device
         * has moved head past the step before.
         */
        void taken(long step) {
            int index = ConnectionLayout.slot(taken++);
            offsets[index] = reserved;
            steps[index] = step;
            recvMem.offsetPlain(ConnectionLayout.slot(step), reserved);
            reserved = SlotPool.NONE;
        }

        void consumed(long head) {
            while (taken != given && Steps.reached(head, steps[ConnectionLayout.slot(given)] + 1)) {
                share.give(offsets[ConnectionLayout.slot(given++)]);
            }
        }

        boolean isEmpty() {
            return taken == given;
        }
    }
}
