package org.millrace.transport;

import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.AbortFlag;
import org.millrace.abi.ConnectionLayout;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.shm.Doorbell;
import org.millrace.proxy.spi.ProxyConnection;

/**
 * Settings that all connections of a communicator have in common.
 *
 * @param layout          layout of a connection's memory, the same on all ranks
 * @param firstStep       initial value of the counters, the same on all ranks
 * @param listener        listener that each end must notify when the end's proxy has stopped
 * @param failure         consumer of failures of connections that have no proxy; called from any thread
 * @param sharedSlots     sizes of the slots that connections of sends and receives share over a network; null if each
 *                        connection has its own slots
 * @param groupedChannels number of channels whose collectives share network connections; 0 if each channel has its own
 *                        network connections
 * @param heap            memory of this rank that other processes of the host have mapped completely; null if this rank
 *                        has none
 * @param abort           flag that makes the rank's kernels exit and its proxies stop moving data
 * @param check           check of the payloads of connections over a network
 * @param communicator    number of the communicator: the same on all its ranks, and different for different
 *                        communicators
 */
public record EndSettings(ConnectionLayout layout, long firstStep, ProxyConnection.StopListener listener,
        Consumer<? super Throwable> failure, @Nullable SharedSlotSizes sharedSlots, int groupedChannels,
        @Nullable Heap heap, AbortFlag abort, PayloadCheck check, long communicator) {

    /**
     * Memory of a rank that other processes map.
     *
     * @param name     name that other processes use to map the memory
     * @param doorbell doorbell that wakes the rank that owns the memory, and the ranks connected to that rank
     */
    public record Heap(MemorySegment segment, String name, Doorbell doorbell) {
    }

    /**
     * Sizes of the slots that connections of sends and receives share ({@code NCCL_NET_SHARED_BUFFERS}). There is one
     * pool of slots for each channel and direction.
     *
     * @param slotBytes   size of a slot in bytes, which is the size of a chunk
     * @param connections maximum number of connections that share a pool: one for each other rank
     */
    public record SharedSlotSizes(int slotBytes, int connections) {
    }
}
