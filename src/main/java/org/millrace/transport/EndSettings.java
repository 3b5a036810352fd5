package org.millrace.transport;

import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.AbortFlag;
import org.millrace.abi.ConnectionLayout;
import org.millrace.net.shm.Doorbell;
import org.millrace.proxy.ProxyConnection;

/**
 * What all connections of a communicator have in common.
 *
 * @param layout          how a connection's memory lies, the same on all ranks
 * @param firstStep       where the counters begin, the same on all ranks
 * @param listener        learns that an end's proxy stopped: it must be told
 * @param failure         learns that a connection cannot go on, where there is no proxy that could stop; from any
 *                        thread
 * @param sharedSlots     how connections of sends and receives share slots, where a network lies between; null if each
 *                        has its own
 * @param groupedChannels channels of a ring, which share connections of a network; 0 if each has its own
 * @param heap            memory of this rank's, of which other processes of the host have all mapped; null if there is
 *                        none
 * @param abort           makes the rank's kernels leave, and its proxies stand still
 * @param communicator    a number that all ranks have in common, and other communicators have not
 */
public record EndSettings(ConnectionLayout layout, long firstStep, ProxyConnection.StopListener listener,
        Consumer<? super Throwable> failure, @Nullable SharedSlotSizes sharedSlots, int groupedChannels,
        @Nullable Heap heap, AbortFlag abort, long communicator) {

    /**
     * Memory of a rank that other processes map.
     *
     * @param doorbell wakes the rank that it belongs to, and those that this one is connected with
     */
    public record Heap(MemorySegment segment, String name, Doorbell doorbell) {
    }

    /**
     * How connections of sends and receives share slots ({@code NCCL_NET_SHARED_BUFFERS}): those of one channel and
     * direction have a pool of their own.
     *
     * @param slotBytes   bytes of a slot: of a chunk
     * @param connections how many share a pool at the most: one for each other rank
     */
    public record SharedSlotSizes(int slotBytes, int connections) {
    }
}
