package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.DirectMemory;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.proxy.ConnectionName;
import org.millrace.proxy.Steps;

/**
 * The device's end of a connection that it sends on. All protocols share its step counter, which persists from kernel
 * to kernel, as {@code ncclConnInfo.step} does.
 */
public final class SendPort extends Port {

    /** Null if the peer cannot read this rank's memory. */
    private final @Nullable DirectMemory direct;
    private long head;

    public SendPort(ConnectionName name, ConnectionInfo info) {
        super(name, info);
        this.direct = info.direct();
        this.head = sendMem.headAcquire();
    }

    /** Begins an operation. Skips the steps up to a whole chunk. */
    public void begin(int chunkSteps) {
        step = Steps.roundUp(step, chunkSteps);
    }

    /**
     * Returns whether the next slots are free ({@code waitPeer}). The acquire of head pairs with the proxy's release:
     * the slot's previous content has been sent, and the location of a slot of a pool is visible.
     */
    public boolean hasRoom(int steps) {
        long needed = step + steps;
        if (!Steps.reached(head + ConnectionLayout.SLOTS, needed)) {
            head = sendMem.headAcquire();
        }
        return Steps.reached(head + ConnectionLayout.SLOTS, needed);
    }

    /**
     * Posts the size of the next step before its data is written. For LL the proxy receives no other notification.
     * LL128 and Simple also move tail after the data.
     */
    public void postSize(long bytes) {
        recvMem.sizeRelease(ConnectionLayout.slot(step), bytes);
    }

    /** Sets the location of the next step's data: in the user's memory instead of a slot (mode PTR). */
    public void point(long address) {
        recvMem.ptrPlain(ConnectionLayout.slot(step), address);
    }

    /** Returns whether the peer's device can read this rank's memory without a proxy. */
    public boolean reaches(MemorySegment memory) {
        return direct != null && direct.reaches(memory);
    }

    /** Lets the peer's device read the data of the next step in place, in memory that it reaches. */
    public void pointDirectly(MemorySegment memory, long offset) {
        direct.point(recvMem, ConnectionLayout.slot(step), memory, offset);
    }

    /** Marks the data of the next step as lying in its slot. Resets the entry if earlier data lay elsewhere. */
    public void keepInSlot() {
        if (direct != null) {
            recvMem.modePlain(ConnectionLayout.slot(step), RecvMem.MODE_NORMAL);
        }
    }

    /**
     * Returns whether the peer's device has consumed everything that was posted. The acquire pairs with the release
     * that returned the slots.
     */
    public boolean allTaken() {
        head = sendMem.headAcquire();
        return Steps.reached(head, step);
    }

    /**
     * Returns whether the proxy has read everything that was posted. The proxy empties the size of a step after reading
     * it. The acquire pairs with the proxy's release.
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
     * Hands the slots to the proxy ({@code postPeer}). The release of tail pairs with the proxy's acquire: the proxy
     * sees the size and the data.
     */
    public void post(int steps) {
        step += steps;
        recvMem.tailRelease(step);
    }

    /** Advances past a step of lines. Their flags announce it. LL never moves tail. */
    public void passLines() {
        step++;
    }

    public long slotBytes(Protocol protocol) {
        return layout.slotBytes(protocol);
    }

    @Override
    public String toString() {
        return name + " waits for its proxy to send: step " + step + ", head " + sendMem.headAcquire() + ", tail "
                + recvMem.tailAcquire();
    }
}
