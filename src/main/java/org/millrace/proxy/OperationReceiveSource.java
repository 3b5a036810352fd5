package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.OperationSignature;
import org.millrace.proxy.spi.ProxyException;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.proxy.spi.Steps;

/**
 * Source of steps to receive, for announced operations. A peer that runs another operation is detected at its first
 * frame. The payload's destination is the connection's own slot (mode NORMAL), a slot of the channel's pool (OFFSET),
 * or the user's memory (PTR). Lines are received through {@link ArrivingFrames}.
 */
final class OperationReceiveSource implements ReceiveStepSource {

    private final ConnectionName name;
    private final ConnectionLayout layout;
    private final OperationQueue steps;
    private final RecvMem recvMem;
    private final MemoryRegion memory;
    private final ArrivingFrames arriving;
    /** The connection's slots of the pool; null if the connection has its own slots. */
    private final @Nullable Slots shared;
    private final long simpleSlotBytes;
    /** Slices that the device gathers from pages; null if the device gathers none. */
    private final SliceLists.@Nullable GatheredSlices gathered;
    /** For each frame in flight, whether the device gathers its slice from pages. */
    private final boolean[] gathers = new boolean[ConnectionLayout.SLOTS];
    private long taken;
    private long arrived;
    /** Number of Simple slices before the next step, as the device counts them. */
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
        this.memory = memory;
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
            // The peer is ahead. Its frame waits until this rank's program starts the operation.
            return false;
        }
        if (op == null) {
            // This rank has announced an operation without steps on this connection, and the frame belongs to no later
            // operation. The check below therefore fails, and its message names the announced operation.
            op = without;
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

    /** Determines the destination of the payload. Returns false if no destination is available yet. */
    private boolean place() {
        if (op.user() != null) {
            int slot = ConnectionLayout.slot(steps.step());
            region = op.user();
            offset = 0;
            if (size == 0) {
                return true; // The device posts no address for an empty payload.
            }
            // This acquire pairs with the device's release of the size, which follows the device's store of ptr.
            long offered = recvMem.sizeAcquire(slot);
            if (offered == RecvMem.EMPTY) {
                // The kernel has not posted the address yet, so it has not begun and the user may still use the memory.
                return false;
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

    /**
     * Returns whether the device includes the slice in its count of slices. The device does not count a slice that
     * arrives in the user's memory, because that memory is already the final destination.
     */
    private boolean isCounted() {
        return gathered != null && op.protocol() == Protocol.SIMPLE && op.user() == null;
    }

    private boolean isGathered() {
        return isCounted() && gathered.takes(size);
    }

    @Override
    public @Nullable MemoryRegion slotRegion() {
        if (op.user() != null || isGathered()) {
            return null;
        }
        return op.protocol() == Protocol.SIMPLE ? region : memory;
    }

    @Override
    public long slotOffset() {
        return offset;
    }

    @Override
    public void taken() {
        long step = steps.step();
        if (op.user() != null && size > 0) {
            // Marks the device's address as used, by storing the size EMPTY. The release of tail publishes this store.
            // The device posts the next address only after it has read tail.
            recvMem.sizePlain(ConnectionLayout.slot(step), RecvMem.EMPTY);
        } else if (shared != null && op.protocol() == Protocol.SIMPLE && size > 0) {
            shared.taken(step);
        }
        boolean inPages = isGathered();
        gathers[ConnectionLayout.slot(taken++)] = inPages;
        arriving.taken(op.protocol(), op.protocol() == Protocol.SIMPLE && size > 0 && !inPages ? region : null, offset,
                size);
        if (isCounted()) {
            // {@code end} includes the empty slices that the frame covers after its data.
            slices += (end - step) / op.sliceSteps();
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
     * The pool's slots that one connection uses for received frames (mode OFFSET). A slot is taken when a frame
     * arrives. Its offset is stored in {@code connFifo} before tail is moved. The slot returns to the pool when the
     * device's head has passed the step.
     */
    private static final class Slots {

        private final RecvMem recvMem;
        private final SlotPool.Share share;
        private final int[] offsets = new int[ConnectionLayout.SLOTS];
        private final long[] steps = new long[ConnectionLayout.SLOTS];
        private long taken;
        private long given;
        /** Offset of the slot that is reserved for the next frame; {@link SlotPool#NONE} if no slot is reserved. */
        private int reserved = SlotPool.NONE;

        Slots(RecvMem recvMem, SlotPool.Share share) {
            this.recvMem = recvMem;
            this.share = share;
        }

        MemoryRegion memory() {
            return share.pool().memory();
        }

        /**
         * Reserves a slot for the next frame, or returns the slot that is already reserved. Returns
         * {@link SlotPool#NONE} if no slot is available.
         */
        int reserve() {
            if (reserved == SlotPool.NONE && taken - given < ConnectionLayout.SLOTS) {
                reserved = share.take();
            }
            return reserved;
        }

        /**
         * Assigns the reserved slot to a step's frame, which is being received. The step's {@code connFifo} entry may
         * be written, because the device's head has passed the previous step that used the entry.
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
