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
 * The device's end of a connection that it sends on. Its step counter is that of all protocols and lives on from kernel
 * to kernel, as {@code ncclConnInfo.step} does.
 */
public final class SendPort extends Port {

    /** Null where the peer cannot read in this rank's memory. */
    private final @Nullable DirectMemory direct;
    private long head;

    public SendPort(ConnectionName name, ConnectionInfo info) {
        super(name, info);
        this.direct = info.direct();
        this.head = sendMem.headAcquire();
    }

    /** Begins an operation: the steps up to a whole chunk are skipped. */
    public void begin(int chunkSteps) {
        step = Steps.roundUp(step, chunkSteps);
    }

    /**
     * Whether the next slots are free ({@code waitPeer}). The acquire of head pairs with the proxy's release: what the
     * slot held has been sent, and where a slot of a pool lies is said.
     */
    public boolean hasRoom(int steps) {
        long needed = step + steps;
        if (!Steps.reached(head + ConnectionLayout.SLOTS, needed)) {
            head = sendMem.headAcquire();
        }
        return Steps.reached(head + ConnectionLayout.SLOTS, needed);
    }

    /**
     * Says the size of what will be posted, before the data is written: for lines that is all that the proxy is told of
     * the step.
     */
    public void postSize(long bytes) {
        recvMem.sizeRelease(ConnectionLayout.slot(step), bytes);
    }

    /** Says where the data is that will be posted: in the user's memory, and not in a slot (mode PTR). */
    public void point(long address) {
        recvMem.ptrPlain(ConnectionLayout.slot(step), address);
    }

    /** Whether the peer's device can read in this rank's memory, with no proxy between. */
    public boolean reaches(MemorySegment memory) {
        return direct != null && direct.reaches(memory);
    }

    /** Lets the peer's device read the data of the next step where it lies, in memory that it reaches. */
    public void pointDirectly(MemorySegment memory, long offset) {
        direct.point(recvMem, ConnectionLayout.slot(step), memory, offset);
    }

    /** The data of the next step is in its slot, where that may have been otherwise before. */
    public void keepInSlot() {
        if (direct != null) {
            recvMem.modePlain(ConnectionLayout.slot(step), RecvMem.MODE_NORMAL);
        }
    }

    /**
     * Whether the peer's device has taken everything that was posted. The acquire pairs with the release by which it
     * gave the slots back.
     */
    public boolean allTaken() {
        head = sendMem.headAcquire();
        return Steps.reached(head, step);
    }

    /**
     * Whether the proxy has read everything that was posted: it empties a size when it has. The acquire pairs with its
     * release.
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
     * Hands the slots over ({@code postPeer}). The release of tail pairs with the proxy's acquire: it sees the size and
     * the data.
     */
    public void post(int steps) {
        step += steps;
        recvMem.tailRelease(step);
    }

    /** Goes on behind a step whose lines say by themselves that they are there: LL never moves tail. */
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
