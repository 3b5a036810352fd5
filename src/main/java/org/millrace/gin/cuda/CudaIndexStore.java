package org.millrace.gin.cuda;

import org.millrace.cuda.copy.CopyQueue;
import org.millrace.gin.queue.GinContext;

/** Indices of one context in a GPU's memory. On the agent's thread, with the device current. */
public final class CudaIndexStore implements GinContext.IndexStore {

    private final CopyQueue queue;
    private final long address;
    private long last;

    /**
     * Indices that are zero.
     *
     * @param address device memory, 4 bytes for each peer
     */
    public CudaIndexStore(CopyQueue queue, long address) {
        this.queue = queue;
        this.address = address;
    }

    @Override
    public boolean begin(int peer, int index) {
        if (!queue.hasRoom()) {
            return false;
        }
        last = queue.storeInt(address + (long) peer * Integer.BYTES, index);
        return true;
    }

    @Override
    public boolean isSettled() {
        return queue.isDone(last);
    }
}
