package org.millrace.device.gin;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.millrace.gin.window.Window;

/**
 * The same window at each rank near this one, which blocks load from and store to by themselves:
 * {@code ncclGetLsaPointer}. What a rank stored before a release is what another finds behind the acquire that saw it.
 */
public final class LsaMemory {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private final MemorySegment[] peers;
    private final int self;

    private LsaMemory(MemorySegment[] peers, int self) {
        this.peers = peers;
        this.self = self;
    }

    /** How much of the window {@link #connect} uses: for 8 bytes of each rank. */
    public static long bytes(GinTeam near) {
        return (long) near.ranks() * Long.BYTES;
    }

    /**
     * Tells the ranks near this one where its window lies, and hears of theirs. All of them are of this process, and
     * call it.
     *
     * @param memory of the window, as long on every rank
     * @param offset of {@link #bytes} in it that nobody uses meanwhile
     * @param signal that nobody uses meanwhile, and that is 0
     */
    @SuppressWarnings("restricted") // windows are as long on every rank
    public static LsaMemory connect(HostGin gin, Window window, MemorySegment memory, long offset, int signal) {
        GinTeam near = gin.communicator().lsa();
        for (int peer = 0; peer < near.ranks(); peer++) {
            gin.putValue(near, peer, window, offset + (long) near.rank() * Long.BYTES, memory.address(), Long.BYTES,
                    RemoteAction.increment(signal));
        }
        gin.waitSignal(signal, near.ranks());
        MemorySegment[] peers = new MemorySegment[near.ranks()];
        for (int peer = 0; peer < peers.length; peer++) {
            long address = memory.get(ValueLayout.JAVA_LONG, offset + (long) peer * Long.BYTES);
            peers[peer] = MemorySegment.ofAddress(address).reinterpret(memory.byteSize());
        }
        gin.resetSignal(signal);
        return new LsaMemory(peers, near.rank());
    }

    /** This rank's number among those near it. */
    public int self() {
        return self;
    }

    /** How many ranks are near each other. */
    public int ranks() {
        return peers.length;
    }

    /** A rank's window. */
    public MemorySegment of(int peer) {
        return peers[peer];
    }

    /** Loads 8 bytes of a rank's window, behind what was stored before they were released. */
    public long acquire(int peer, long offset) {
        return (long) LONG.getAcquire(peers[peer], offset);
    }

    /** Stores 8 bytes in a rank's window, behind everything that this rank stored before. */
    public void release(int peer, long offset, long value) {
        LONG.setRelease(peers[peer], offset, value);
    }

    /** Adds to 8 bytes of a rank's window, behind everything that this rank stored before. */
    public void addRelease(int peer, long offset, long value) {
        long ignored = (long) LONG.getAndAddRelease(peers[peer], offset, value);
    }
}
