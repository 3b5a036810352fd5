package org.millrace.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import org.millrace.ChannelWork;
import org.millrace.abi.AbortFlag;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.KernelChannel;
import org.millrace.abi.kernel.KernelArguments;
import org.millrace.abi.kernel.KernelCommunicator;
import org.millrace.abi.kernel.WorkCounters;
import org.millrace.abi.kernel.WorkFifoCounters;

/**
 * The part of a communicator's memory that host and device share ({@code ncclDevComm}). It contains the ranks, their
 * channels, the work FIFO, the abort flag, and the counters of the work on each channel. The host creates the memory
 * and writes it, and kernels find it by its address. The host may read the counters while kernels run.
 */
public final class DeviceCommunicator {

    private static final long LINE = 128;

    private final KernelCommunicator view;
    private final ConnectionLayout layout;
    private final DeviceChannel[] channels;
    private final AbortFlag abortFlag;
    private final WorkFifo fifo;
    private final WorkFifoCounters fifoCounters;
    private final WorkCounters[] started = new WorkCounters[KernelArguments.MAX_CHANNELS];
    private final WorkCounters[] completed = new WorkCounters[KernelArguments.MAX_CHANNELS];

    /**
     * @param arena         lifetime of the memory; the arena is closed after the last kernel has left the device
     * @param nodes         for each rank, the number of its machine; machines are numbered from 0 in the order of their
     *                      lowest ranks
     * @param transferChunk size of a chunk of sends and receives, in bytes
     * @param fifoBytes     size of the work FIFO in bytes, a power of two
     * @param firstWork     initial value of the FIFO's counters: 0, except in tests of their wrap
     */
    public DeviceCommunicator(Arena arena, int rank, int[] nodes, ConnectionLayout layout, int transferChunk,
            int channelCount, int fifoBytes, int firstWork) {
        view = KernelCommunicator.of(arena.allocate(KernelCommunicator.BYTES, LINE));
        MemorySegment flag = arena.allocate(LINE, LINE).asSlice(0, AbortFlag.BYTES);
        MemorySegment begun = arena.allocate(KernelArguments.MAX_CHANNELS * WorkCounters.BYTES, LINE);
        MemorySegment ended = arena.allocate(KernelArguments.MAX_CHANNELS * WorkCounters.BYTES, LINE);
        abortFlag = AbortFlag.of(flag);
        for (int channel = 0; channel < started.length; channel++) {
            started[channel] = WorkCounters.of(begun.asSlice(channel * WorkCounters.BYTES, WorkCounters.BYTES));
            completed[channel] = WorkCounters.of(ended.asSlice(channel * WorkCounters.BYTES, WorkCounters.BYTES));
        }
        fifoCounters = WorkFifoCounters.of(arena.allocate(WorkFifoCounters.BYTES, WorkFifoCounters.ALIGNMENT));
        fifo = new WorkFifo(arena.allocate(fifoBytes, LINE), fifoCounters, firstWork);
        view.place(rank, nodes.length, nodes[rank], Arrays.stream(nodes).max().orElse(0) + 1);
        view.sizes(layout, transferChunk);
        view.shared(flag.address(), begun.address(), ended.address());
        this.layout = view.layout();
        this.channels = new DeviceChannel[channelCount];
        MemorySegment structs = arena.allocate(KernelArguments.MAX_CHANNELS * KernelChannel.BYTES, LINE);
        for (int channel = 0; channel < channelCount; channel++) {
            channels[channel] = new DeviceChannel(rank, channel,
                    KernelChannel.of(structs.asSlice(channel * KernelChannel.BYTES, KernelChannel.BYTES)),
                    arena.allocate((long) nodes.length * Integer.BYTES, Integer.BYTES));
        }
        view.topology(structs.address(), localRanks(arena, nodes).address(), dense(arena, nodes).address());
    }

    private static MemorySegment dense(Arena arena, int[] nodes) {
        int[] ranks = IntStream.range(0, nodes.length)
                .boxed()
                .sorted(Comparator.comparingInt(rank -> nodes[rank]))
                .mapToInt(rank -> rank)
                .toArray();
        return arena.allocateFrom(ValueLayout.JAVA_INT, ranks);
    }

    private static MemorySegment localRanks(Arena arena, int[] nodes) {
        MemorySegment localRanks = arena.allocate((long) nodes.length * Integer.BYTES, Integer.BYTES);
        int[] onNode = new int[nodes.length];
        for (int rank = 0; rank < nodes.length; rank++) {
            localRanks.setAtIndex(ValueLayout.JAVA_INT, rank, onNode[nodes[rank]]++);
        }
        return localRanks;
    }

    /** Returns the address of the shared memory, which is an argument of each kernel. */
    public long address() {
        return view.address();
    }

    public KernelCommunicator view() {
        return view;
    }

    public int rank() {
        return view.rank();
    }

    public int ranks() {
        return view.ranks();
    }

    public ConnectionLayout layout() {
        return layout;
    }

    public int channels() {
        return channels.length;
    }

    public DeviceChannel channel(int number) {
        return channels[number];
    }

    public WorkFifo fifo() {
        return fifo;
    }

    public WorkFifoCounters fifoCounters() {
        return fifoCounters;
    }

    /**
     * Sets the abort flag: kernels leave the device, including kernels that are launched later. Callable from any
     * thread.
     */
    public void abort() {
        abortFlag.raise();
    }

    public AbortFlag abortFlag() {
        return abortFlag;
    }

    /**
     * Returns whether {@link #abort} was called. If so, this thread sees everything that happened before that call
     * (acquire).
     */
    public boolean aborted() {
        return abortFlag.raisedAcquire();
    }

    /** Returns the counters of the work items that kernels have begun on a channel. Kernels write the counters. */
    public WorkCounters startedWork(int channel) {
        return started[channel];
    }

    /** Returns the counters of the work items that kernels have completed on a channel. Kernels write the counters. */
    public WorkCounters completedWork(int channel) {
        return completed[channel];
    }

    /**
     * Returns the time when a work item began on a channel, as a value of {@link System#nanoTime}. Returns -1 if the
     * work item has not begun, or if later work items have overwritten its time. Callable from any thread.
     *
     * @param number number of the work item on the channel, from 1
     */
    public long started(int channel, long number) {
        return started[channel].timestamp(number);
    }

    /** Returns the work items that began last on each channel, oldest first. Callable from any thread. */
    public List<ChannelWork> recentWork() {
        List<ChannelWork> recent = new ArrayList<>();
        for (int channel = 0; channel < channels(); channel++) {
            long latest = started[channel].latest();
            for (long number = Math.max(1, latest - WorkCounters.SLOTS + 1); number <= latest; number++) {
                long begun = started(channel, number);
                if (begun != -1) { // A later work item may have overwritten the entry.
                    recent.add(new ChannelWork(channel, number, begun, completed(channel, number)));
                }
            }
        }
        return recent;
    }

    /**
     * Returns the time when a work item was complete, as a value of {@link System#nanoTime}. Returns -1 if the work
     * item is not complete, or if later work items have overwritten its time. Callable from any thread.
     */
    public long completed(int channel, long number) {
        return completed[channel].timestamp(number);
    }
}
