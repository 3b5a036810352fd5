package org.millrace.device.work;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.abi.AbortFlag;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.KernelArguments;
import org.millrace.abi.KernelCommunicator;
import org.millrace.abi.WorkCounters;
import org.millrace.abi.WorkFifoCounters;

/**
 * A communicator as its kernels see it, with the memory that host and device share: the abort flag, and counters of the
 * work on each channel, which the host may read while kernels run.
 */
public final class DeviceCommunicator {

    private static final long LINE = 128;

    private final KernelCommunicator view;
    private final AbortFlag abortFlag;
    private final WorkFifo fifo;
    private final WorkFifoCounters fifoCounters;
    private final WorkCounters[] started = new WorkCounters[KernelArguments.MAX_CHANNELS];
    private final WorkCounters[] completed = new WorkCounters[KernelArguments.MAX_CHANNELS];
    /** Work on each channel that has begun so far; written by the device alone. */
    private final long[] works = new long[KernelArguments.MAX_CHANNELS];

    /**
     * A communicator whose kernels have done nothing.
     *
     * @param arena     the memory's lifetime; must outlast the last kernel
     * @param rank      this rank
     * @param ranks     of how many
     * @param layout    sizes of a connection's buffers
     * @param fifoBytes of the work FIFO, a power of two
     * @param firstWork where the FIFO's counters begin: 0 but for tests of their wrap
     */
    public DeviceCommunicator(Arena arena, int rank, int ranks, ConnectionLayout layout, int fifoBytes, int firstWork) {
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
        view.place(rank, ranks, 0, 1);
        view.sizes(layout, Math.toIntExact(layout.simpleBytes() / ConnectionLayout.SLOTS));
        view.shared(flag.address(), begun.address(), ended.address());
    }

    /**
     * What kernels are launched with.
     *
     * @return address of the struct
     */
    public long address() {
        return view.address();
    }

    /**
     * The struct.
     *
     * @return as kernels read it
     */
    public KernelCommunicator view() {
        return view;
    }

    /**
     * The work FIFO.
     *
     * @return the host's end of it
     */
    public WorkFifo fifo() {
        return fifo;
    }

    /**
     * The work FIFO's counters.
     *
     * @return as kernels read them
     */
    public WorkFifoCounters fifoCounters() {
        return fifoCounters;
    }

    /** Makes kernels leave, now and later. Any thread. */
    public void abort() {
        abortFlag.raise();
    }

    /**
     * Whether kernels are to leave.
     *
     * @return true once {@link #abort} was called; what was done before it is visible
     */
    public boolean aborted() {
        return abortFlag.raisedAcquire();
    }

    /**
     * Notes on the device that the next work of a channel begins.
     *
     * @param channel   the channel
     * @param timestamp ns
     * @return number of the work
     */
    public long begin(int channel, long timestamp) {
        long number = ++works[channel];
        started[channel].note(number, timestamp);
        return number;
    }

    /**
     * Notes on the device that a work is complete.
     *
     * @param channel   the channel
     * @param number    of the work
     * @param timestamp ns
     */
    public void complete(int channel, long number, long timestamp) {
        completed[channel].note(number, timestamp);
    }

    /**
     * When a work began. Any thread, at any time.
     *
     * @param channel the channel
     * @param number  of the work on it, from 1 on
     * @return ns of {@link System#nanoTime}; -1 if it has not begun, or is one of too long ago
     */
    public long started(int channel, long number) {
        return started[channel].timestamp(number);
    }

    /**
     * When a work was complete. Any thread, at any time.
     *
     * @param channel the channel
     * @param number  of the work on it, from 1 on
     * @return ns of {@link System#nanoTime}; -1 if it is not complete, or is one of too long ago
     */
    public long completed(int channel, long number) {
        return completed[channel].timestamp(number);
    }
}
