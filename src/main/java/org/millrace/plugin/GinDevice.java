package org.millrace.plugin;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.cuda.ForeignMemory;
import org.millrace.gin.GinAgent;
import org.millrace.gin.WindowMemory;
import org.millrace.net.Network;
import org.millrace.net.shm.ShmOptions;

/**
 * Where GIN's kernels run, and what memory they reach: a GPU, or the host. Serves one device; everything taken here is
 * given back by {@link #close}.
 */
interface GinDevice extends AutoCloseable {

    /**
     * Memory that both sides reach.
     *
     * @param host   as Java sees it
     * @param device its address as kernels see it
     */
    record Shared(MemorySegment host, long device) {
    }

    /** Zeroed memory that kernels change atomically; its address as they see it. */
    long allocate(long bytes);

    void free(long address);

    /** Zeroed memory that both sides poll. It lives until {@link #close}. */
    Shared share(long bytes);

    /**
     * Memory that the device's copies reach.
     *
     * @param device  its address as the device sees it
     * @param release to be called before it is unmapped
     */
    record Pinned(long device, Runnable release) {
    }

    /** Whether bytes for ranks of this host are staged, and their signals kept, in memory shared with them. */
    boolean sharesMemory();

    /** Where that memory is made: ranks that see the same directory are of one host. */
    default Path sharedDirectory() {
        return ShmOptions.defaults().directory();
    }

    /** Lets the device's copies reach host memory that was made elsewhere. */
    Pinned pin(MemorySegment memory);

    /**
     * Waits until no copy is under way whose agent has let go of what it was for; false if that takes too long: memory
     * must be left alone.
     */
    boolean settle();

    /** Stores bytes in memory of {@link #allocate}; they are there when this returns. */
    void store(long address, MemorySegment bytes);

    /**
     * Lets peers reach a window without the network: tickets for them, one for each physical segment, to be closed when
     * they have used them; none if it is not possible.
     */
    List<ForeignMemory.Ticket> invite(long address, long bytes, int type);

    /** A window's memory; {@code all} is the window at each rank, this one included. */
    WindowMemory window(Network network, long address, int type, int rank, GinExchange.Offer[] all);

    /** What its copy engines did so far, for people; null if it has none. */
    default @Nullable String copies() {
        return null;
    }

    /** What serves descriptors; its thread has the device current. */
    GinAgent agent();

    /** Ends the thread. Its communicators were removed before. */
    @Override
    void close();
}
