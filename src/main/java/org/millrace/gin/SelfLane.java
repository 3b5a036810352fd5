package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.GinOp;

/** A rank's descriptors for itself: copies between its own windows. */
final class SelfLane extends Lane {

    private final Landings landings;

    SelfLane(GinCommunicator communicator, int rank) {
        super(communicator, rank);
        landings = new Landings(communicator.options().depth());
    }

    @Override
    int progress() {
        int work = pull();
        landings.allArrived();
        return work + landings.settle();
    }

    @Override
    boolean advance(PeerQueue queue) {
        if (landings.isFull()) {
            return false;
        }
        GinDescriptor descriptor = queue.current();
        Landing landing = landings.next();
        long bytes = nextChunk(queue);
        if (descriptor.has(GinOp.VA_SIGNAL)) {
            landing.vaSignal(localWindow(queue, descriptor.sourceHandle, descriptor.sourceOffset, Long.BYTES),
                    descriptor.sourceOffset, descriptor.signalValue);
        } else if (!descriptor.has(GinOp.FLUSH) && descriptor.size > 0 && !write(queue, landing, bytes)) {
            return false;
        }
        if (queue.moved() + bytes < descriptor.size) {
            queue.advance(bytes);
        } else {
            if (descriptor.signals() && !descriptor.has(GinOp.VA_SIGNAL)) {
                landing.signal(queue.context(), descriptor.signal, descriptor.signalValue);
            }
            landing.completes(queue, queue.finish());
        }
        landings.add();
        return true;
    }

    private boolean write(PeerQueue queue, Landing landing, long bytes) {
        GinDescriptor descriptor = queue.current();
        Window target = localWindow(queue, descriptor.targetHandle, descriptor.targetOffset, descriptor.size);
        long offset = descriptor.targetOffset + queue.moved();
        if (descriptor.has(GinOp.INLINE)) {
            landing.open = target.openWrite(landing.transfer, offset, bytes);
            if (landing.open) {
                storeInline(landing.transfer, descriptor.inlineValue);
                landing.transfer.memory().arrived(landing.transfer);
            }
        } else {
            Window source = localWindow(queue, descriptor.sourceHandle, descriptor.sourceOffset, descriptor.size);
            landing.open =
                    target.beginCopy(landing.transfer, offset, source, descriptor.sourceOffset + queue.moved(), bytes);
        }
        return landing.open;
    }

    /** Puts a value's bytes where a payload would arrive. */
    static void storeInline(Transfer transfer, long value) {
        MemorySegment place = transfer.region().segment();
        long at = transfer.regionOffset();
        for (int i = 0; i < transfer.bytes(); i++) {
            place.set(java.lang.foreign.ValueLayout.JAVA_BYTE, at + i, (byte) (value >>> 8 * i));
        }
    }

    @Override
    void tellSettled() {
        // to itself a rank sends no frames
    }

    @Override
    boolean isDrained() {
        return landings.isEmpty() && !isWanted();
    }

    @Override
    void close(boolean failed) {
        landings.abandon();
    }
}
