package org.millrace.plugin.gin;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.cuda.driver.ForeignMemory;
import org.millrace.gin.GinAgent;
import org.millrace.gin.WindowMemory;
import org.millrace.net.Network;
import org.millrace.net.shm.ShmOptions;

/**
 * The device of GIN's kernels, a GPU or the host, with its memory. {@link #close} frees all memory that was allocated.
 */
interface GinDevice extends AutoCloseable {

    /**
     * Memory that kernels and the agent access.
     *
     * @param host   the memory in Java
     * @param device address that kernels use for the memory
     */
    record Shared(MemorySegment host, long device) {
    }

    /** Allocates zeroed memory that kernels change atomically. Returns its address for kernels. */
    long allocate(long bytes);

    void free(long address);

    /** Allocates zeroed memory that kernels and the agent poll. {@link #close} frees it. */
    Shared share(long bytes);

    /**
     * Memory that the device's copies can access.
     *
     * @param device  address that the device uses for the memory
     * @param release action to run before the memory is unmapped
     */
    record Pinned(long device, Runnable release) {
    }

    /** Returns whether the ranks of one host keep staged bytes and signals in memory that these ranks share. */
    boolean sharesMemory();

    /** Returns the directory of shared memory. Ranks that see the same directory are on one host. */
    default Path sharedDirectory() {
        return ShmOptions.defaults().directory();
    }

    /** Lets the device's copies access host memory that was allocated elsewhere. */
    Pinned pin(MemorySegment memory);

    /**
     * Waits until no copy accesses the memory of an object that the agent has released. Returns false on a timeout; the
     * object's memory must then not be freed.
     */
    boolean settle();

    /** Copies bytes to memory of {@link #allocate}. Kernels see the bytes when this method returns. */
    void store(long address, MemorySegment bytes);

    /**
     * Lets peers access a window without the network. Returns a ticket for each physical segment of the window, or an
     * empty list if peers cannot map it. Close the tickets when the peers have used them.
     */
    List<ForeignMemory.Ticket> invite(long address, long bytes, int type);

    /** Returns a window's memory. {@code all} describes the part of the window at each rank, including this rank. */
    WindowMemory window(Network network, long address, int type, int rank, GinExchange.Offer[] all);

    /** Returns statistics of the device's copy engines as a text for people; null if the device has no copy engines. */
    default @Nullable String copies() {
        return null;
    }

    /** Returns the agent that serves descriptors. The device is current on the agent's thread. */
    GinAgent agent();

    /** Ends the agent's thread and frees the memory. Requires that the agent's communicators have been removed. */
    @Override
    void close();
}
