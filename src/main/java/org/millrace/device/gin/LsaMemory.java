package org.millrace.device.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import org.millrace.file.ProcessIdentity;
import org.millrace.gin.GinException;
import org.millrace.gin.Window;
import org.millrace.net.shm.SharedMemory;

/**
 * The memory of one window at all ranks near this rank. Blocks load from it and store to it without the agent
 * ({@code ncclGetLsaPointer}). Stores are releases, and loads are acquires. A rank that loads another rank's value
 * therefore also sees all earlier stores of that rank. Memory from {@link #allocate} is also accessible for other
 * processes of the host.
 */
public final class LsaMemory implements AutoCloseable {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    /**
     * Windows of ranks in this process, by address, while the ranks exchange addresses. The map contains the segments,
     * not only addresses. If a rank has ended early, an access by another rank therefore throws an exception instead of
     * writing to freed memory.
     */
    private static final Map<Long, MemorySegment> OFFERED = new ConcurrentHashMap<>();
    /** Memory from {@link #allocate} that other processes can map, by address. */
    private static final Map<Long, SharedMemory> SHARED = new ConcurrentHashMap<>();
    private static final int SIGNALS = 2;
    private static final long ALIGNMENT = 64;
    /**
     * Number of words that a rank sends to each near rank: the address of its window, and the words of
     * {@link SharedMemory#key}.
     */
    private static final int WORDS = 1 + SharedMemory.KEY_WORDS;

    private final MemorySegment[] peers;
    private final int self;
    private final List<SharedMemory> mapped;

    private LsaMemory(MemorySegment[] peers, int self, List<SharedMemory> mapped) {
        this.peers = peers;
        this.self = self;
        this.mapped = mapped;
    }

    /**
     * Returns memory for a window, filled with zeros and valid until the arena is closed. Other processes can map it if
     * the host allows processes to share memory.
     */
    @SuppressWarnings("restricted") // safe: the new segment has the exact length of the memory
    public static MemorySegment allocate(Arena arena, long bytes) {
        if (SharedMemory.sealedDomain() == 0) {
            return arena.allocate(bytes, ALIGNMENT);
        }
        SharedMemory shared = SharedMemory.createSealed(bytes);
        long address = shared.segment().address();
        SHARED.put(address, shared);
        return shared.segment().reinterpret(bytes, arena, ignored -> {
            SHARED.remove(address);
            shared.close();
        });
    }

    /**
     * Returns the number of bytes that {@link #connect} uses in the window.
     *
     * @param ranks number of ranks that are near each other
     */
    public static long bytes(int ranks) {
        return (long) ranks * WORDS * Long.BYTES;
    }

    /** Returns the number of signals that one call of {@link #connect} uses. The call does not reset the signals. */
    public static int signals() {
        return SIGNALS;
    }

    /**
     * Exchanges the locations of windows between the ranks near this rank. All near ranks must call this method. If the
     * near ranks belong to several processes, the window's memory must come from {@link #allocate}.
     *
     * @param memory this rank's memory of the window, of the same length on every rank
     * @param offset offset of a range of the window. The range has {@link #bytes} bytes and has no other use during
     *               this call.
     * @param signal number of the first signal that this call uses. The call uses {@link #signals} consecutive signals.
     *               They are 0 at the beginning and have no other use during this call.
     */
    public static LsaMemory connect(HostGin gin, Window window, MemorySegment memory, long offset, int signal) {
        GinTeam near = gin.communicator().lsa();
        OFFERED.put(memory.address(), memory);
        long[] words = told(memory);
        for (int peer = 0; peer < near.ranks(); peer++) {
            for (int word = 0; word < WORDS; word++) {
                gin.putValue(near, peer, window, offset + bytes(near.rank()) + (long) word * Long.BYTES, words[word],
                        Long.BYTES, RemoteAction.increment(signal));
            }
        }
        gin.waitSignal(signal, (long) near.ranks() * WORDS);
        MemorySegment[] peers = new MemorySegment[near.ranks()];
        List<SharedMemory> mapped = new ArrayList<>();
        for (int peer = 0; peer < peers.length; peer++) {
            long[] theirs = memory.asSlice(offset + bytes(peer), bytes(1)).toArray(ValueLayout.JAVA_LONG);
            peers[peer] = isOfThisProcess(theirs) ? OFFERED.get(theirs[0]) : map(theirs, memory.byteSize(), mapped);
            if (peers[peer] == null) {
                mapped.forEach(SharedMemory::close);
                throw new GinException(gin + ": the rank near it with number " + peer + " is of process " + theirs[2]
                        + ", and its window's memory was not allocated by LsaMemory.allocate, or this host does not "
                        + "share memory between processes");
            }
        }
        for (int peer = 0; peer < near.ranks(); peer++) {
            gin.signal(near, peer, RemoteAction.increment(signal + 1));
        }
        gin.waitSignal(signal + 1, near.ranks());
        OFFERED.remove(memory.address());
        return new LsaMemory(peers, near.rank(), mapped);
    }

    private static long[] told(MemorySegment memory) {
        SharedMemory shared = SHARED.get(memory.address());
        ProcessIdentity self = ProcessIdentity.CURRENT;
        long[] key = shared == null ? new long[] {0, self.pid(), self.startTicks(), self.namespace()} : shared.key();
        return LongStream.concat(LongStream.of(memory.address()), LongStream.of(key)).toArray();
    }

    private static boolean isOfThisProcess(long[] words) {
        return new ProcessIdentity((int) words[2], words[3], words[4]).equals(ProcessIdentity.CURRENT);
    }

    private static @Nullable MemorySegment map(long[] words, long bytes, List<SharedMemory> mapped) {
        long[] key = Arrays.copyOfRange(words, 1, WORDS);
        if (key[1] >>> Integer.SIZE == 0) {
            // The key has no file descriptor, so the memory cannot be shared.
            return null;
        }
        SharedMemory theirs = SharedMemory.join(Path.of(""), key, bytes);
        mapped.add(theirs);
        return theirs.segment();
    }

    /** Unmaps the memory of other processes. Blocks must no longer use it. */
    @Override
    public void close() {
        mapped.forEach(SharedMemory::close);
        mapped.clear();
    }

    /** Returns this rank's index among the near ranks. */
    public int self() {
        return self;
    }

    public int ranks() {
        return peers.length;
    }

    public MemorySegment of(int peer) {
        return peers[peer];
    }

    /**
     * Loads 8 bytes of a rank's window with acquire. This rank then sees all stores that the storing rank made before
     * its release of the loaded value.
     */
    public long acquire(int peer, long offset) {
        return (long) LONG.getAcquire(peers[peer], offset);
    }

    /** Stores 8 bytes in a rank's window with release. The release publishes all earlier stores of this rank. */
    public void release(int peer, long offset, long value) {
        LONG.setRelease(peers[peer], offset, value);
    }

    /**
     * Adds a value to 8 bytes of a rank's window with release. The release publishes all earlier stores of this rank.
     */
    public void addRelease(int peer, long offset, long value) {
        long ignored = (long) LONG.getAndAddRelease(peers[peer], offset, value);
    }
}
