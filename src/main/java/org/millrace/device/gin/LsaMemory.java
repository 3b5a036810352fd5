package org.millrace.device.gin;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.millrace.gin.GinException;
import org.millrace.gin.Window;

/**
 * The same window at each rank near this one, which blocks load from and store to by themselves:
 * {@code ncclGetLsaPointer}. What a rank stored before a release is what another finds behind the acquire that saw it.
 */
public final class LsaMemory {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    /**
     * Windows by address, while ranks look for them: the segments themselves, so that a rank that has ended by itself
     * is an exception for others, which would else store to memory that was freed.
     */
    private static final Map<Long, MemorySegment> OFFERED = new ConcurrentHashMap<>();
    private static final int SIGNALS = 2;

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

    /** How many signals {@link #connect} uses, once. */
    public static int signals() {
        return SIGNALS;
    }

    /**
     * Tells the ranks near this one where its window lies, and learns of theirs. All of them are of this process, and
     * call it.
     *
     * @param memory of the window, as long on every rank
     * @param offset of {@link #bytes} in it that nobody uses meanwhile
     * @param signal the first of {@link #signals} that nobody uses meanwhile, and that are 0
     */
    public static LsaMemory connect(HostGin gin, Window window, MemorySegment memory, long offset, int signal) {
        GinTeam near = gin.communicator().lsa();
        OFFERED.put(memory.address(), memory);
        for (int peer = 0; peer < near.ranks(); peer++) {
            gin.putValue(near, peer, window, offset + (long) near.rank() * Long.BYTES, memory.address(), Long.BYTES,
                    RemoteAction.increment(signal));
        }
        gin.waitSignal(signal, near.ranks());
        MemorySegment[] peers = new MemorySegment[near.ranks()];
        for (int peer = 0; peer < peers.length; peer++) {
            long address = memory.get(ValueLayout.JAVA_LONG, offset + (long) peer * Long.BYTES);
            MemorySegment theirs = OFFERED.get(address);
            if (theirs == null) {
                throw new GinException(gin + ": the rank near it with number " + peer + " is not of this process");
            }
            peers[peer] = theirs;
        }
        for (int peer = 0; peer < near.ranks(); peer++) {
            gin.signal(near, peer, RemoteAction.increment(signal + 1));
        }
        gin.waitSignal(signal + 1, near.ranks());
        OFFERED.remove(memory.address());
        return new LsaMemory(peers, near.rank());
    }

    /** This rank's number among those near it. */
    public int self() {
        return self;
    }

    public int ranks() {
        return peers.length;
    }

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
