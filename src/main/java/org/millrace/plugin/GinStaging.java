package org.millrace.plugin;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.millrace.MillraceException;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.StagingRing;
import org.millrace.gin.Window;
import org.millrace.net.shm.SharedMemory;
import org.millrace.net.shm.ShmOptions;

/**
 * The memory that a group's ranks of one host share to stage bytes in: a ring for each direction between two of them, made for the first window of a peer that
 * is out of this rank's direct reach. Where it cannot be made, or mapped, bytes travel over the network as they do between hosts.
 */
final class GinStaging implements AutoCloseable {

    /** Eight chunks: one being written, one being read, and what hides the time until either side notices. */
    private static final long MOST_BYTES = 8 << 20;
    /** What all rings of a group that this rank sends through may have together; shared memory is short in containers. */
    private static final long GROUP_BYTES = 32 << 20;

    private final int rank;
    private final GinHardware hardware;
    private final GinControl control;
    private final boolean allowed;
    private final Path directory = ShmOptions.defaults().directory();
    private final boolean[] tried;
    private final List<Mapped> mapped = new ArrayList<>();

    /** A mapping here, pinned for the device. */
    private record Mapped(SharedMemory memory, GinHardware.Pinned pinned) implements AutoCloseable {
        StagingRing ring() {
            return new StagingRing(memory.segment(), pinned.device());
        }

        @Override
        public void close() {
            pinned.release().run();
            memory.close();
        }
    }

    GinStaging(int rank, int ranks, GinHardware hardware, GinControl control) {
        this.rank = rank;
        this.hardware = hardware;
        this.control = control;
        this.allowed = hardware.sharesStaging();
        this.tried = new boolean[ranks];
    }

    /** Every rank calls it for the same window, and tells the same number of things: what it wants, what it has made, and what it has mapped. */
    void connect(GinCommunicator communicator, Window window) {
        int ranks = tried.length;
        long place = place();
        long[][] mine = new long[ranks][GinControl.WORDS];
        for (int peer = 0; peer < ranks; peer++) {
            mine[peer][0] = place;
        }
        long[][] theirs = control.exchange(mine);
        Mapped[] made = new Mapped[ranks];
        mine = new long[ranks][GinControl.WORDS];
        for (int peer = 0; peer < ranks; peer++) {
            boolean wanted = peer != rank && !tried[peer] && place != 0 && theirs[peer][0] == place && window.memory().reach(peer) == 0;
            made[peer] = wanted ? make(peer, communicator.options().chunkBytes()) : null;
            if (made[peer] != null) {
                System.arraycopy(made[peer].memory().key(), 0, mine[peer], 0, SharedMemory.KEY_WORDS);
                mine[peer][SharedMemory.KEY_WORDS] = made[peer].memory().segment().byteSize();
            }
        }
        theirs = control.exchange(mine);
        mine = new long[ranks][GinControl.WORDS];
        for (int peer = 0; peer < ranks; peer++) {
            mine[peer][0] = peer != rank && open(communicator, peer, theirs[peer]) ? 1 : 0;
        }
        theirs = control.exchange(mine);
        for (int peer = 0; peer < ranks; peer++) {
            if (made[peer] != null && theirs[peer][0] == 1) {
                communicator.stageOut(peer, made[peer].ring());
                NcclLog.info("GIN: bytes for rank " + peer + " are staged in memory shared with it");
            }
        }
    }

    /** A number that only processes have in common which can share memory; 0 for none. */
    private long place() {
        try {
            return allowed ? SharedMemory.place(directory).hashCode() | 1L << Integer.SIZE : 0;
        } catch (MillraceException none) {
            return 0;
        }
    }

    private Mapped make(int peer, long chunkBytes) {
        tried[peer] = true;
        long share = Long.highestOneBit(GROUP_BYTES / (tried.length - 1));
        long capacity = Math.max(2 * Long.highestOneBit(2 * chunkBytes - 1), Math.min(MOST_BYTES, share));
        try {
            return pin(SharedMemory.create(directory, StagingRing.bytes(capacity)));
        } catch (MillraceException e) {
            NcclLog.info("GIN: bytes for rank " + peer + " travel over the network (" + e.getMessage() + ")");
            return null;
        }
    }

    /** Maps what a peer made, if it made anything; false if that is not possible. */
    private boolean open(GinCommunicator communicator, int peer, long[] words) {
        long bytes = words[SharedMemory.KEY_WORDS];
        if (bytes == 0) {
            return false;
        }
        try {
            Mapped theirs = pin(SharedMemory.open(directory, words, bytes));
            communicator.stageIn(peer, theirs.ring());
            return true;
        } catch (MillraceException | IllegalArgumentException e) {
            NcclLog.info("GIN: what rank " + peer + " sends travels over the network (" + e.getMessage() + ")");
            return false;
        }
    }

    private Mapped pin(SharedMemory memory) {
        try {
            Mapped made = new Mapped(memory, hardware.pin(memory.segment()));
            mapped.add(made);
            return made;
        } catch (MillraceException e) {
            memory.close();
            throw e;
        }
    }

    /** Unmaps all. The agent has let go of the group, and no copy is under way. */
    @Override
    public void close() {
        mapped.forEach(Mapped::close);
        mapped.clear();
    }
}
