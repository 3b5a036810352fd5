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
    private final OperationSteps steps;
    private final SendMem sendMem;
    private final RecvMem recvMem;
    private final MemoryRegion memory;
    private final LineFlags flags;
    /** Null if the connection has slots of its own. */
    private final @Nullable SendCredits credits;
    private final long simpleSlotBytes;
    private @Nullable ProxyOp op;

    OperationSendSource(ConnectionName name, ConnectionInfo info, MemoryRegion memory, OperationQueue queue,
            SlotPool.@Nullable Share share) {
        this.name = name;
        this.layout = info.layout();
        this.steps = new OperationSteps(queue, info.firstStep());
        this.sendMem = info.sendMem();
        this.recvMem = info.recvMem();
        this.memory = memory;
        this.flags = new LineFlags(layout, memory.segment());
        this.credits = share == null ? null : new SendCredits(sendMem, recvMem, share, info.firstStep());
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
        if (!Steps.reached(recvMem.tailAcquire(), end)) {
            return false;
        }
        size = recvMem.sizePlain(ConnectionLayout.slot(step));
        requireSize(size % LL128Line.BYTES == 0 && size <= layout.slotBytes(Protocol.LL128),
                layout.slotBytes(Protocol.LL128));
        return flags.ll128Ready(step, size);
    }

    private boolean nextSimple() {
        long tail = recvMem.tailAcquire();
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
}
