package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.net.FrameHeader;
import org.millrace.proxy.AbstractProxy.DeviceAbortedException;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyException;

/**
 * Source of steps to send. It finds the steps in the shared memory alone. A takeover uses this source, because an
 * unmodified libnccl announces no operations.
 *
 * <p>
 * If the size of a step s in {@code connFifo} is not {@link RecvMem#EMPTY}, the first rule that applies determines the
 * kind of the step:
 * <ul>
 * <li>The step has no data if its size is 0. Its protocol is not known. For LL, the device posts neither lines nor a
 * change of tail for a step without data, so the step is sent immediately. For Simple, the device moves tail after it
 * has posted the size, and the new tail is then forwarded.
 * <li>It is an LL step if all its lines contain the flag of s. Only LL steps write the LL buffer, and no other LL step
 * has that flag.
 * <li>The step is not ready if tail has not passed it. Devices move tail after the data of Simple and LL128 steps.
 * <li>It is an LL128 step if its lines contain the flag of s, for the same reason as for LL.
 * <li>Otherwise it is a Simple step.
 * </ul>
 * A step that tail has passed may have the size {@code EMPTY}, for two reasons. First, a Simple slice of two steps has
 * a size only at its first step. Second, the device rounded up the first step of an operation and so skipped the step.
 * The preceding frame, or a frame without data, covers such a step.
 *
 * <p>
 * After an abort of its communicator, a kernel stops waiting for credits and executes the rest of its operation. Such a
 * kernel moves tail past {@code head + 8}, which no other kernel does, and overwrites slots in flight. The steps that
 * it posts from then on are not sent.
 */
final class MemorySendSource extends SendStepSource {

    private final ConnectionName name;
    private final ConnectionLayout layout;
    private final SlotBuffers buffers;
    private final SendMem sendMem;
    private final RecvMem recvMem;
    private final LineFlags flags;
    /** First step that no offered frame covers. */
    private long covered;
    /** Whether the device posted a size for the step; false if the frame only forwards tail. */
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
        // If all slots are in flight, the slot of the next step still contains the size of the oldest step in flight.
        // That size must not be used.
        boolean free = step - head < ConnectionLayout.SLOTS;
        size = free ? recvMem.sizeAcquire(ConnectionLayout.slot(step)) : RecvMem.EMPTY;
        posted = size != RecvMem.EMPTY && classify(tail);
        if (!posted) {
            // No data is ready to send. A frame without data forwards the steps that tail has passed.
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

    /**
     * Skips empty steps that tail has passed, beginning at {@code from}. Returns the first step that is not skipped.
     */
    private long skipEmpty(long from, long tail) {
        long at = from;
        while (tail - at > 0 && at - covered < ConnectionLayout.SLOTS
                && recvMem.sizeAcquire(ConnectionLayout.slot(at)) == RecvMem.EMPTY) {
            at++;
        }
        return at;
    }

    /** Determines the protocol of a step that has a size. Returns false if the step's data is not complete. */
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
            throw new ProxyException(name + ", step " + step + ": the device posted a size of " + size + " bytes, "
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

    /**
     * {@inheritDoc} The peer's kernel does not wait for an LL step without data, so the peer may close the connection
     * before this step is sent.
     */
    @Override
    boolean continuesWithoutPeer() {
        return true;
    }

    /** Returns whether all steps that the device has posted were sent. */
    @Override
    boolean drained() {
        return !next();
    }
}
