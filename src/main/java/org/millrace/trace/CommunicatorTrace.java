package org.millrace.trace;

import static org.millrace.trace.TraceLayout.CommunicatorFields.OPERATIONS;
import static org.millrace.trace.TraceLayout.CommunicatorFields.OPERATION_BYTES;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TraceLayout.CommunicatorFields;

/**
 * A communicator and its last operations, as what launches them tells: the engine, or NCCL's profiler. From any thread.
 */
public final class CommunicatorTrace implements AutoCloseable {

    private final ProcessTrace process;
    private final int index;
    private final long base;
    private final long ring;
    /** By entry of the ring, what is written there. */
    private final @Nullable TraceName[] names = new TraceName[OPERATIONS];
    private final OperationBacklog backlog = new OperationBacklog();
    /** Null if the process is not recorded. */
    private final Recorder.@Nullable Operations recorder;
    private long enqueued;
    private long launches;
    /** Of what native code enqueues: all before it are recorded, and the times of all before the other. */
    private long recorded;
    private long timed;
    private boolean closed;

    CommunicatorTrace(ProcessTrace process, int index, long base, Recorder.@Nullable Operations recorder) {
        this.process = process;
        this.recorder = recorder;
        this.index = index;
        this.base = base;
        this.ring = base + TraceLayout.RECORD_BYTES;
    }

    /** What is known better than when it was opened: -1, or empty, for what is not. */
    public synchronized void describe(int rank, int size, int nodes, String name) {
        TraceMemory.set(base + TraceLayout.RANK_IN_GROUP_OFFSET, rank);
        TraceMemory.set(base + CommunicatorFields.SIZE_OFFSET, size);
        TraceMemory.set(base + CommunicatorFields.NODES_OFFSET, nodes);
        TraceMemory.text(base + CommunicatorFields.NAME_OFFSET, CommunicatorFields.NAME_BYTES, name);
        if (recorder != null) {
            recorder.describe(rank, size, nodes, name);
        }
    }

    /** From now on {@link #started(long)} and {@link #ended(long)} are called for every operation. */
    public synchronized void tellsKernels() {
        TraceMemory.set(base + CommunicatorFields.KERNELS_OFFSET, 1);
    }

    /** Since when the thread that runs the kernels has been in a function of the program; 0 if it is in none. */
    public synchronized void inFunction(long since) {
        if (!closed) {
            TraceMemory.set(base + CommunicatorFields.FUNCTION_OFFSET, since);
        }
    }

    /** A peer was found to run another operation, before this fails; {@code collective} is -1 for a send or receive. */
    public synchronized void disagrees(int peer, long collective) {
        if (!closed) {
            TraceMemory.set(base + CommunicatorFields.DISAGREES_WITH_OFFSET, peer + 1);
            TraceMemory.set(base + CommunicatorFields.DISAGREES_AT_OFFSET, collective + 1);
        }
    }

    /** The communicator has failed, and its program has not closed it yet. */
    public synchronized void failed(String why) {
        if (!closed) {
            process.failed(index, why);
        }
    }

    /**
     * The address of the block, for native code that writes down operations itself: then nobody does so here. It stays
     * mapped while the process lives.
     */
    public long address() {
        return base;
    }

    /** Native code writes down operations itself: where the process is recorded they are looked for, often. */
    public void enqueuedByNativeCode() {
        if (recorder != null) {
            recorder.watch(this::recordNew);
        }
    }

    /** Records what native code has enqueued since the last time; what the ring has no longer is missing. */
    private synchronized void recordNew() {
        long now = closed ? recorded : TraceMemory.getAcquire(base + CommunicatorFields.ENQUEUED_OFFSET);
        for (recorded = Math.max(recorded, now - OPERATIONS + 1); recorded < now; recorded++) {
            long at = entry(recorded);
            String name = TraceMemory.text(at + CommunicatorFields.OPERATION_NAME_OFFSET,
                    CommunicatorFields.OPERATION_NAME_BYTES);
            recorder.enqueued(recorded, TraceMemory.get(at + CommunicatorFields.ENQUEUED_TIME_OFFSET), name,
                    TraceMemory.get(at + CommunicatorFields.SEQUENCE_OFFSET),
                    TraceMemory.get(at + CommunicatorFields.BYTES_OFFSET),
                    TraceMemory.get(at + CommunicatorFields.COUNT_OFFSET),
                    TraceMemory.getInt(at + CommunicatorFields.TYPE_OFFSET),
                    TraceMemory.getInt(at + CommunicatorFields.PEER_OFFSET),
                    TraceMemory.getInt(at + CommunicatorFields.ROOT_OFFSET), -1);
        }
        for (timed = Math.max(timed, now - OPERATIONS + 1); timed < now; timed++) {
            long at = entry(timed);
            long ended = TraceMemory.get(at + CommunicatorFields.ENDED_OFFSET);
            if (ended == 0 || TraceMemory.get(at + CommunicatorFields.CHANNELS_STARTED_OFFSET) != TraceMemory
                    .get(at + CommunicatorFields.CHANNELS_ENDED_OFFSET)) {
                return;
            }
            recorder.ran(timed, TraceMemory.get(at + CommunicatorFields.STARTED_OFFSET), ended);
        }
    }

    /**
     * An operation was enqueued.
     *
     * @param name     as users know it, for instance {@code "all_reduce"}
     * @param sequence its number in the communicator, the same on all ranks; of a send or receive, its number among
     *                 those to or from the peer; -1 if not known
     * @param bytes    of one rank's data
     * @param count    elements
     * @param type     NCCL's number of their type; -1 if not known
     * @param channels how many channels it runs on; 0 if not known
     * @param peer     of a send or receive; -1 otherwise
     * @param root     -1 if there is none
     * @return its number here, for the calls that follow
     */
    public synchronized long enqueued(TraceName name, long sequence, long bytes, long count, int type, int channels,
            int peer, int root) {
        long at = entry(enqueued);
        keepIfPending(enqueued - OPERATIONS, at);
        TraceMemory.set(at + CommunicatorFields.SEQUENCE_OFFSET, sequence);
        TraceMemory.set(at + CommunicatorFields.BYTES_OFFSET, bytes);
        TraceMemory.set(at + CommunicatorFields.COUNT_OFFSET, count);
        TraceMemory.set(at + CommunicatorFields.TYPE_OFFSET, type);
        TraceMemory.set(at + CommunicatorFields.CHANNELS_OFFSET, channels);
        TraceMemory.set(at + CommunicatorFields.PEER_OFFSET, peer);
        TraceMemory.set(at + CommunicatorFields.ROOT_OFFSET, root);
        long now = System.nanoTime();
        TraceMemory.set(at + CommunicatorFields.ENQUEUED_TIME_OFFSET, now);
        TraceMemory.set(at + CommunicatorFields.STARTED_OFFSET, 0L);
        TraceMemory.set(at + CommunicatorFields.ENDED_OFFSET, 0L);
        TraceMemory.set(at + CommunicatorFields.CHANNELS_STARTED_OFFSET, 0L);
        TraceMemory.set(at + CommunicatorFields.CHANNELS_ENDED_OFFSET, 0L);
        int entry = (int) enqueued & OPERATIONS - 1;
        if (names[entry] != name) {
            names[entry] = name;
            name.store(at + CommunicatorFields.OPERATION_NAME_OFFSET);
        }
        TraceMemory.release(base + CommunicatorFields.ENQUEUED_OFFSET, enqueued + 1);
        if (recorder != null) {
            recorder.enqueued(enqueued, now, name.toString(), sequence, bytes, count, type, peer, root, launches);
        }
        if (FlightEvents.wanted()) {
            FlightEvents.operation(TraceMemory.get(base + TraceLayout.COMMUNICATOR_OFFSET),
                    TraceMemory.getInt(base + TraceLayout.RANK_IN_GROUP_OFFSET), name, sequence, bytes);
        }
        return enqueued++;
    }

    /**
     * The entry of an operation is about to be another's. What the rank hands to itself nobody else can be waiting in.
     */
    private void keepIfPending(long operation, long at) {
        boolean isPending = operation >= ended() && TraceMemory.getInt(base + CommunicatorFields.KERNELS_OFFSET) != 0;
        if (isPending && (TraceMemory.getInt(at + CommunicatorFields.PEER_OFFSET) < 0
                || TraceMemory.get(at + CommunicatorFields.SEQUENCE_OFFSET) >= 0)) {
            backlog.add(operation, ended(), at);
            showOldest(operation + 1);
        }
    }

    private long ended() {
        return TraceMemory.get(base + CommunicatorFields.ENDED_COUNT_OFFSET);
    }

    /** Of those that have not ended, and that the ring does not have: the operations before one. */
    private void showOldest(long before) {
        long ended = ended();
        long shown = TraceMemory.get(base + CommunicatorFields.OLDEST_NUMBER_OFFSET) - 1;
        long oldest = ended;
        while (oldest < before && !backlog.has(oldest)) {
            if (++oldest - ended == OPERATIONS) {
                return; // far ahead of what is remembered: a few may be the rank's own affair, but not so many
            }
        }
        if (oldest < before && oldest != shown) {
            TraceMemory.release(base + CommunicatorFields.OLDEST_NUMBER_OFFSET, 0L); // while it is written
            backlog.store(oldest, base + CommunicatorFields.OLDEST_OFFSET);
            TraceMemory.release(base + CommunicatorFields.OLDEST_NUMBER_OFFSET, oldest + 1);
        }
    }

    /** A kernel is about to run all operations that were enqueued since the last. */
    public synchronized void launched() {
        launches++;
    }

    /** {@return whether {@link #ran} is of use} */
    public boolean isRecorded() {
        return recorder != null;
    }

    /** When the kernel of these operations began, and when it ended. */
    public synchronized void ran(long first, long end, long began, long ended) {
        for (long operation = first; recorder != null && operation < end; operation++) {
            recorder.ran(operation, began, ended);
        }
    }

    /** Its kernel has begun, as have those of all before it. */
    public synchronized void started(long operation) {
        count(operation, CommunicatorFields.BEGUN_OFFSET);
        stamp(operation, CommunicatorFields.STARTED_OFFSET);
    }

    /** Its kernel has ended, as have those of all before it. */
    public synchronized void ended(long operation) {
        count(operation, CommunicatorFields.ENDED_COUNT_OFFSET);
        if (!closed) {
            showOldest(enqueued - OPERATIONS);
        }
        stamp(operation, CommunicatorFields.ENDED_OFFSET);
    }

    private void count(long operation, int offset) {
        if (!closed && TraceMemory.get(base + offset) <= operation) {
            TraceMemory.set(base + offset, operation + 1);
        }
    }

    private void stamp(long operation, int offset) {
        boolean isRemembered = operation >= 0 && operation < enqueued && enqueued - operation <= OPERATIONS;
        if (!closed && isRemembered && TraceMemory.get(entry(operation) + offset) == 0) {
            TraceMemory.set(entry(operation) + offset, System.nanoTime());
        }
    }

    long entry(long operation) {
        return ring + (operation & OPERATIONS - 1) * OPERATION_BYTES;
    }

    /** The communicator is destroyed. May be called twice. */
    @Override
    public synchronized void close() {
        if (!closed) {
            if (recorder != null) {
                recorder.close();
            }
            closed = true;
            process.closeFailed(index);
        }
    }

    /**
     * Operations that have not ended, and whose entries in the file are others' by now: a program may enqueue thousands
     * ahead. Grows to {@value #MOST} of them; what is further ahead is not remembered. Used under the communicator's
     * lock.
     */
    static final class OperationBacklog {

        static final int MOST = 1 << 14;
        private static final int LEAST = 64;
        private static final int WORDS = OPERATION_BYTES / Long.BYTES;

        private long[] entries = {};
        /** Of each entry, plus 1; 0 if it is empty. */
        private long[] numbers = {};

        /** Remembers what lies at an address, unless more than can be remembered have not ended. */
        void add(long operation, long ended, long address) {
            while (operation - ended >= numbers.length) {
                if (numbers.length == MOST) {
                    return;
                }
                grow();
            }
            int at = at(operation);
            numbers[at] = operation + 1;
            for (int word = 0; word < WORDS; word++) {
                entries[at * WORDS + word] = TraceMemory.get(address + (long) word * Long.BYTES);
            }
        }

        boolean has(long operation) {
            return numbers.length > 0 && numbers[at(operation)] == operation + 1;
        }

        /** Writes one that it has to an address. */
        void store(long operation, long address) {
            for (int word = 0; word < WORDS; word++) {
                TraceMemory.set(address + (long) word * Long.BYTES, entries[at(operation) * WORDS + word]);
            }
        }

        private int at(long operation) {
            return (int) operation & numbers.length - 1;
        }

        private void grow() {
            long[] oldNumbers = numbers;
            long[] oldEntries = entries;
            numbers = new long[Math.max(LEAST, 2 * oldNumbers.length)];
            entries = new long[numbers.length * WORDS];
            for (int i = 0; i < oldNumbers.length; i++) {
                if (oldNumbers[i] != 0) {
                    int at = at(oldNumbers[i] - 1);
                    numbers[at] = oldNumbers[i];
                    System.arraycopy(oldEntries, i * WORDS, entries, at * WORDS, WORDS);
                }
            }
        }
    }

    /** A short name that is written down again and again: encoded once, so that nothing is allocated for it. */
    public static final class TraceName {

        static final int BYTES = CommunicatorFields.OPERATION_NAME_BYTES;

        private final String text;
        private final long[] words = new long[BYTES / Long.BYTES];

        private TraceName(String text) {
            this.text = text;
            byte[] encoded = Arrays.copyOf(text.getBytes(StandardCharsets.UTF_8), BYTES);
            ByteBuffer.wrap(encoded).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(words);
        }

        /** A name of at most {@value #BYTES} bytes; what is longer is cut. */
        public static TraceName of(String text) {
            return new TraceName(text);
        }

        void store(long address) {
            for (int word = 0; word < words.length; word++) {
                TraceMemory.set(address + (long) word * Long.BYTES, words[word]);
            }
        }

        @Override
        public String toString() {
            return text;
        }
    }
}
