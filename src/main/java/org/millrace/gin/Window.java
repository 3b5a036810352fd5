package org.millrace.gin;

/**
 * A window of this rank. All ranks of a communicator register windows together, each rank with its own memory. The n-th
 * window of this rank corresponds to the n-th window of every other rank.
 */
public final class Window {

    /**
     * Maximum size in bytes of a put that {@link #isOrdered} may order. A flag, a count or a header fits into this
     * size, which covers one or two cache lines.
     */
    public static final long MAX_ORDERED = 64;

    private final long handle;
    private final WindowMemory memory;
    private volatile boolean strict = true;
    /** Number of transfers that use the memory, plus the number of holds for later transfers. Agent's thread only. */
    private int open;

    Window(long handle, WindowMemory memory) {
        this.handle = handle;
        this.memory = memory;
    }

    /** Returns the handle that identifies the window in descriptors: 63 bits, not 0, the same on every rank. */
    public long handle() {
        return handle;
    }

    public WindowMemory memory() {
        return memory;
    }

    public long bytes() {
        return memory.bytes();
    }

    /**
     * Allows puts to this window to become visible in any order, from now on. A signal still becomes visible after all
     * earlier puts of the same context and peer. The program must not read the bytes of a put before it has seen a
     * signal.
     */
    public void relax() {
        strict = false;
    }

    /**
     * Returns whether a put of this size must become visible after all earlier puts of its context. Only small puts are
     * ordered, because a program may poll the bytes of a small put to learn that earlier bytes have arrived. The
     * program must not poll the bytes of a large put.
     */
    public boolean isOrdered(long bytes) {
        return bytes <= MAX_ORDERED && strict;
    }

    public boolean holds(long offset, long bytes) {
        return offset >= 0 && bytes >= 0 && offset <= memory.bytes() - bytes;
    }

    /**
     * Begins a transfer as {@link WindowMemory#openRead} does. This method and the following methods count the begun
     * transfer as a use of the memory until the transfer ends.
     */
    public boolean openRead(WindowTransfer transfer, long offset, long bytes) {
        return count(transfer, memory.openRead(transfer, offset, bytes));
    }

    public boolean openWrite(WindowTransfer transfer, long offset, long bytes) {
        return count(transfer, memory.openWrite(transfer, offset, bytes));
    }

    public boolean beginCopy(WindowTransfer transfer, long offset, Window source, long sourceOffset, long bytes) {
        return count(transfer, memory.beginCopy(transfer, offset, source.memory, sourceOffset, bytes));
    }

    public boolean beginPeerCopy(WindowTransfer transfer, int peer, long offset, Window source, long sourceOffset,
            long bytes) {
        return count(transfer, memory.beginPeerCopy(transfer, peer, offset, source.memory, sourceOffset, bytes));
    }

    public boolean beginPeerRead(WindowTransfer transfer, int peer, long offset, Window target, long targetOffset,
            long bytes) {
        return count(transfer, memory.beginPeerRead(transfer, peer, offset, target.memory, targetOffset, bytes));
    }

    boolean beginCopyOut(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes) {
        return count(transfer, memory.beginCopyOut(transfer, offset, ring, ringOffset, bytes));
    }

    boolean beginCopyIn(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes) {
        return count(transfer, memory.beginCopyIn(transfer, offset, ring, ringOffset, bytes));
    }

    public boolean beginAdd(WindowTransfer transfer, long offset, long value) {
        return count(transfer, memory.beginAdd(transfer, offset, value));
    }

    private boolean count(WindowTransfer transfer, boolean opened) {
        if (opened) {
            transfer.open(this);
            open++;
        }
        return opened;
    }

    /** Marks the memory as used from now until {@link #release}, for a transfer that has not begun. */
    public void hold() {
        open++;
    }

    /** Ends one use of the memory, which a transfer or {@link #hold} has begun. */
    public void release() {
        open--;
    }

    /** Returns whether no transfer uses the memory, and no {@link #hold} is in effect. Agent's thread only. */
    public boolean isIdle() {
        return open == 0;
    }

    @Override
    public String toString() {
        return "window " + handle + " of " + memory.bytes() + " bytes";
    }
}
