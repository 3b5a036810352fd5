package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.net.FrameHeader;
import org.millrace.proxy.AbstractProxy.DeviceAbortedException;

/**
 * Steps to send that are found in the shared memory alone. In a takeover of the proxy of an unmodified libnccl, no
 * operations are announced.
 *
 * <p>
 * A step s with a size other than {@link RecvMem#EMPTY} in {@code connFifo} is
 * <ul>
 * <li>without data, if the size is 0. It may belong to any protocol. LL posts such a step with neither lines nor tail,
 * so the step is taken at once. A Simple step still moves tail, which is then forwarded when it moves.
 * <li>LL, if all its lines carry the flag of s. Only LL steps write the LL buffer, and no other LL step has that flag.
 * <li>not ready, if tail has not passed it, because Simple and LL128 move tail after their data.
 * <li>LL128, if its lines carry the flag of s, for the same reason as LL.
 * <li>Simple otherwise.
 * </ul>
 * A step that tail has passed may have the size {@code EMPTY}. It then belongs to the slice before it, because Simple
 * slices of two steps have one size. Or it was skipped when an operation rounded its first step up. Such a step is
 * covered by the frame before it, or forwarded by a frame without data.
 *
 * <p>
 * A kernel with an aborted communicator stops waiting for credits and runs through the rest of its operation. It moves
 * tail past {@code head + 8}, which no other kernel does, and overwrites slots that are in flight. Steps that it posts
 * from then on are not sent.
 */
final class MemorySendSource extends SendStepSource {

    private final ConnectionName name;
    private final ConnectionLayout layout;
    private final SlotBuffers buffers;
    private final SendMem sendMem;
    private final RecvMem recvMem;
    private final LineFlags flags;
    /** First step that no frame has covered. */
    private long covered;
    /** Whether the device posted a size for the step; false if the frame only moves tail. */
    private boolean posted;
    private Protocol protocol;

    MemorySendSource(ConnectionName name, SlotBuffers buffers, long firstStep) {
        this.name = name;
        this.layout = buffers.layout();
        this.buffers = buffers;
        this.sendMem = buffers.sendMem();
        this.recvMem = buffers.recvMem();
        this.flags = new LineFlags(layout, buffers.ll().segment());
        this.covered = firstStep;
    }

    @Override
    boolean next() {
        long tail = recvMem.tailAcquire();
        long head = sendMem.headPlain();
        if (tail - head > ConnectionLayout.SLOTS) {
            throw new DeviceAbortedException(
                    name + ": the device ran on without credits, to step " + tail + ": its communicator was aborted");
        }
        step = skipEmpty(covered, tail);
        // If all slots are in flight, the slot of the next step still contains the size of the oldest step, which must
        // be ignored here.
        boolean free = step - head < ConnectionLayout.SLOTS;
        size = free ? recvMem.sizeAcquire(ConnectionLayout.slot(step)) : RecvMem.EMPTY;
        posted = size != RecvMem.EMPTY && classify(tail);
        if (!posted) {
            // There is nothing to send yet. Steps that tail has passed since are forwarded nevertheless.
            size = 0;
            protocol = Protocol.SIMPLE;
            end = step;
            step = covered;
            place();
            return end != covered;
        }
        end = skipEmpty(step + 1, tail);
        place();
        return true;
    }

    private void place() {
        region = buffers.region(protocol);
        offset = buffers.slotOffset(protocol, step);
    }

    /** Returns the first step from here on that tail has not passed or that has a size. */
    private long skipEmpty(long from, long tail) {
        long at = from;
        while (tail - at > 0 && at - covered < ConnectionLayout.SLOTS
                && recvMem.sizeAcquire(ConnectionLayout.slot(at)) == RecvMem.EMPTY) {
            at++;
        }
        return at;
    }

    /** Determines the protocol of a step with a size. Returns false if its data is not complete. */
    private boolean classify(long tail) {
        if (size == 0) {
            protocol = Protocol.SIMPLE;
            return true;
        }
        if (flags.llReady(step, size)) {
            protocol = Protocol.LL;
            return true;
        }
        if (tail - step <= 0) {
            return false;
        }
        protocol = !buffers.simpleOnDevice() && flags.ll128Ready(step, size) ? Protocol.LL128 : Protocol.SIMPLE;
        long room = protocol == Protocol.SIMPLE
                ? layout.bufferBytes(protocol) - ConnectionLayout.slot(step) * layout.slotBytes(protocol)
                : layout.slotBytes(protocol);
        if (size < 0 || size > room) {
            throw new ProxyException(name + ", step " + step + ": the device says a size of " + size + " bytes, "
                    + protocol + " has room for " + room + " there");
        }
        return true;
    }

    @Override
    int protocol() {
        return protocol.id();
    }

    @Override
    void describe(FrameHeader header) {
        StepHeader.posted(header, posted);
    }

    @Override
    void taken() {
        covered = end;
    }

    @Override
    void released(long endStep) {
        sendMem.headRelease(endStep);
    }

    /** {@inheritDoc} A kernel that receives does not wait for an LL step without data: its rank may leave first. */
    @Override
    boolean continuesWithoutPeer() {
        return true;
    }

    /** Returns whether the device has posted no further step. */
    @Override
    boolean drained() {
        return !next();
    }
}
