package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.DirectMemory;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.Steps;

/**
 * The device's sending end of a connection. All protocols share the port's step counter. The counter continues from
 * kernel to kernel, as {@code ncclConnInfo.step} does.
 */
public final class SendPort extends Port {

    /**
     * Pointers that the peer's device uses to read this rank's memory; null if the peer cannot read this rank's memory.
     */
    private final @Nullable DirectMemory direct;
    private long head;

    public SendPort(ConnectionName name, ConnectionInfo info) {
        super(name, info);
        this.direct = info.direct();
        this.head = sendMem.headAcquire();
    }

    /** Begins an operation. Rounds up the step to a multiple of the number of steps of a chunk. */
    public void begin(int chunkSteps) {
        step = Steps.roundUp(step, chunkSteps);
    }

    /**
     * Returns whether the slots of the next steps are free ({@code waitPeer}). The acquire of head pairs with the
     * proxy's release of head. If the result is true, the proxy has sent the previous content of the slots. If the
     * slots belong to a pool, this thread also sees the location of the slots.
     */
    public boolean hasRoom(int steps) {
        long needed = step + steps;
        if (!Steps.reached(head + ConnectionLayout.SLOTS, needed)) {
            head = sendMem.headAcquire();
        }
        return Steps.reached(head + ConnectionLayout.SLOTS, needed);
    }

    /**
     * Stores the size of the next step in {@code connFifo}. The store notifies the proxy of the step. With LL, no other
     * notification follows, and the device writes the data after the store. With LL128 and Simple, the device writes
     * the data and then also advances tail.
     */
    public void postSize(long bytes) {
        recvMem.sizeRelease(ConnectionLayout.slot(step), bytes);
    }

    /** Tells the proxy that the next step's data is at an address in the user's memory, not in a slot (mode PTR). */
    public void point(long address) {
        recvMem.ptrPlain(ConnectionLayout.slot(step), address);
    }

    /** Returns whether the peer's device can read a segment of this rank's memory, without a proxy. */
    public boolean reaches(MemorySegment memory) {
        return direct != null && direct.reaches(memory);
    }

    /**
     * Points the peer's device to the data of the next step in this rank's memory. The peer's device must be able to
     * read this memory.
     */
    public void pointDirectly(MemorySegment memory, long offset) {
        direct.point(recvMem, ConnectionLayout.slot(step), memory, offset);
    }

    /**
     * Records that the data of the next step lies in the step's slot. This call is necessary, because the
     * {@code connFifo} entry may still point to the data of an earlier step.
     */
    public void keepInSlot() {
        if (direct != null) {
            recvMem.modePlain(ConnectionLayout.slot(step), RecvMem.MODE_NORMAL);
        }
    }

    /**
     * Returns whether the peer's device has consumed all posted steps. The acquire of head pairs with the peer device's
     * release of head.
     */
    public boolean allTaken() {
        head = sendMem.headAcquire();
        return Steps.reached(head, step);
    }

    /**
     * Returns whether the proxy has read all posted steps. When the proxy has read a step, it stores
     * {@link org.millrace.abi.RecvMem#EMPTY} as the step's size. This store is a release, and pairs with the acquire of
     * the size in this method.
     */
    public boolean allSent() {
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            if (recvMem.sizeAcquire(slot) != RecvMem.EMPTY) {
                return false;
            }
        }
        return true;
    }

    /**
     * Posts the next slots to the proxy ({@code postPeer}). The release store of {@code tail} pairs with the proxy's
     * acquire load, so the proxy then sees the size and the data.
     */
    public void post(int steps) {
        step += steps;
        recvMem.tailRelease(step);
    }

    /**
     * Advances to the next step without advancing tail. Used by LL, which announces a step only by the flags of its
     * lines.
     */
    public void passLines() {
        step++;
    }

    public long slotBytes(Protocol protocol) {
        return layout.slotBytes(protocol);
    }

    @Override
    public String toString() {
        return name + " waits until earlier data is sent, at step " + step;
    }
}
