package org.millrace.gin;

/**
 * Memory that all ranks of a communicator registered, each its own: the n-th window of one rank is the n-th of every
 * other.
 */
public final class Window {

    /** A cache line or two: as much as a flag, a count or a header has. */
    public static final long MOST_ORDERED = 64;

    private final long handle;
    private final WindowMemory memory;
    private volatile boolean strict = true;
    /** Transfers that use the memory, and promises of some; the agent's thread alone counts them. */
    private int open;

    Window(long handle, WindowMemory memory) {
        this.handle = handle;
        this.memory = memory;
    }

    /** What descriptors call the window: 63 bits, not 0, the same on every rank. */
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
     * Puts to it may be made in any order from now on, as far as no signal is to be behind them: nobody looks at what
     * they bring before.
     */
    public void relax() {
        strict = false;
    }

    /**
     * Whether a put of so many bytes is there behind all that its context has put before, for those who look at the
     * bytes: few bytes tell that others have come; many are awaited by what tells of them.
     */
    public boolean isOrdered(long bytes) {
        return strict && bytes <= MOST_ORDERED;
    }

    public boolean holds(long offset, long bytes) {
        return offset >= 0 && bytes >= 0 && offset <= memory.bytes() - bytes;
    }

    /** As {@link WindowMemory#openRead}; this and those that follow count the transfer until it is over. */
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

    /** The memory will be used by a transfer that is yet to be opened. */
    public void hold() {
        open++;
    }

    /** That will not be so any more. */
    public void letGo() {
        open--;
    }

    /** Whether no transfer uses the memory, or is going to. */
    public boolean isIdle() {
        return open == 0;
    }

    @Override
    public String toString() {
        return "window " + handle + " of " + memory.bytes() + " bytes";
    }
}
