package org.millrace.trace;

import static org.millrace.trace.TraceLayout.CommunicatorFields.OPERATIONS;
import static org.millrace.trace.TraceLayout.CommunicatorFields.OPERATION_BYTES;

import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TraceLayout.CommunicatorFields;

/**
 * Trace of a communicator and its last operations. The code that launches the operations writes this trace: the engine,
 * or NCCL's profiler. Callable from any thread.
 */
public final class CommunicatorTrace implements AutoCloseable {

    private final ProcessTrace process;
    private final int index;
    private final long base;
    private final long ring;
    /** Names of the last operations, by the index of the operation's entry in the ring. */
    private final @Nullable TraceName[] names = new TraceName[OPERATIONS];
    private final OperationBacklog backlog = new OperationBacklog();
    /** Recorder of all operations; null if the process is not recorded. */
    private final Recorder.@Nullable Operations recorder;
    private long enqueued;
    private long launches;
    /**
     * Progress of the recording of operations that native code enqueues. All operations with a number below {@code
     * recorded} are recorded. If the number is also below {@code timed}, the times of the operation are recorded.
     */
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

    /** Stores details that became known after the communicator was opened. Unknown values are -1, or empty. */
    public synchronized void describe(int rank, int size, int nodes, String name) {
        TraceMemory.set(base + TraceLayout.RANK_IN_GROUP_OFFSET, rank);
        TraceMemory.set(base + CommunicatorFields.SIZE_OFFSET, size);
        TraceMemory.set(base + CommunicatorFields.NODES_OFFSET, nodes);
        TraceMemory.text(base, CommunicatorFields.NAME, name);
        if (recorder != null) {
            recorder.describe(rank, size, nodes, name);
        }
    }

    /** Declares that {@link #started(long)} and {@link #ended(long)} are called for every operation from now on. */
    public synchronized void reportKernels() {
        TraceMemory.set(base + CommunicatorFields.KERNELS_OFFSET, 1);
    }

    /**
     * Stores the time at which the thread that runs the kernels entered a host function; 0 if the thread is in none.
     */
    public synchronized void inFunction(long since) {
        if (!closed) {
            TraceMemory.set(base + CommunicatorFields.FUNCTION_OFFSET, since);
        }
    }

    /**
     * Stores that a peer's operation differs from this rank's operation. Called before this communicator fails.
     * {@code collective} is the number of the collective in which the ranks differ; -1 for a send or receive.
     */
    public synchronized void disagrees(int peer, long collective) {
        if (!closed) {
            TraceMemory.set(base + CommunicatorFields.DISAGREES_WITH_OFFSET, peer + 1);
            TraceMemory.set(base + CommunicatorFields.DISAGREES_AT_OFFSET, collective + 1);
        }
    }

    /** Stores that the communicator has failed. The program has not closed the communicator yet. */
    public synchronized void failed(String why) {
        if (!closed) {
            process.failed(index, why);
        }
    }

    /**
     * Returns the address of this communicator's block in the trace file, for native code that writes the operations
     * itself. This object then writes no operations. The trace file stays mapped while the process lives.
     */
    public long address() {
        return base;
    }

    /**
     * Declares that native code writes the operations itself. If the process is recorded, the recorder polls the
     * operations frequently.
     */
    public void enqueuedByNativeCode() {
        if (recorder != null) {
            recorder.watch(this::recordNew);
        }
    }

    /**
     * Records the operations that native code has enqueued since the last call. Operations that the ring no longer
     * holds are missing.
     */
    private synchronized void recordNew() {
        long now = closed ? recorded : TraceMemory.getAcquire(base + CommunicatorFields.ENQUEUED_OFFSET);
        for (recorded = Math.max(recorded, now - OPERATIONS + 1); recorded < now; recorded++) {
            long at = entry(recorded);
            String name = TraceMemory.text(at, CommunicatorFields.OPERATION_NAME);
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
     * @param name     name that users know, for instance {@code "all_reduce"}
     * @param sequence number of the operation in the communicator, the same on all ranks; for a send or receive, number
     *                 of the transfer among the transfers to or from the peer; -1 if unknown
     * @param bytes    number of bytes of one rank's data
     * @param count    number of elements
     * @param type     NCCL's number of the element type; -1 if unknown
     * @param channels number of channels that the operation runs on; 0 if unknown
     * @param peer     peer of a send or receive; -1 otherwise
     * @param root     root; -1 if the operation has none
     * @return number of the operation in this trace, for later calls
     */
    public synchronized long enqueued(TraceName name, long sequence, long bytes, long count, int type, int channels,
            int peer, int root) {
        long at = entry(enqueued);
        keepIfPending(enqueued - OPERATIONS, at);
        // Orders the previous store of the count before the stores of this entry, which overwrites the oldest
        // operation. Pairs with the second reading of the count in TraceReader.
        VarHandle.storeStoreFence();
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
            name.store(at + CommunicatorFields.OPERATION_NAME.offset());
        }
        if (name.function >= 0) {
            long counter = base + CommunicatorFields.FUNCTIONS_OFFSET + (long) name.function * Long.BYTES;
            TraceMemory.set(counter, TraceMemory.get(counter) + 1);
        }
        TraceMemory.release(base + CommunicatorFields.ENQUEUED_OFFSET, enqueued + 1);
        if (recorder != null) {
            recorder.enqueued(enqueued, now, name.toString(), sequence, bytes, count, type, peer, root, launches);
        }
        if (FlightEvents.isRecording()) {
            FlightEvents.operation(TraceMemory.get(base + TraceLayout.COMMUNICATOR_OFFSET),
                    TraceMemory.getInt(base + TraceLayout.RANK_IN_GROUP_OFFSET), name, sequence, bytes);
        }
        return enqueued++;
    }

    /**
     * Remembers an unfinished operation before another operation overwrites its entry. Transfers of the rank to itself
     * are not remembered, because no other rank can wait in them.
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

    /**
     * Stores the oldest unfinished operation that the ring no longer holds, if the number of this operation is below
     * {@code before}.
     */
    private void showOldest(long before) {
        long ended = ended();
        long shown = TraceMemory.get(base + CommunicatorFields.OLDEST_NUMBER_OFFSET) - 1;
        long oldest = ended;
        while (oldest < before && !backlog.has(oldest)) {
            if (++oldest - ended == OPERATIONS) {
                // None of the OPERATIONS oldest unfinished operations is in the backlog. They cannot all be transfers
                // of the rank to itself, which the backlog never contains. Therefore the backlog is full, and the
                // oldest unfinished operation is unknown.
                return;
            }
        }
        if (oldest < before && oldest != shown) {
            // The number 0 marks the entry as invalid while it is written. The fence orders the store of the number
            // before the stores of the entry. Pairs with the second reading of the number in TraceReader.
            TraceMemory.set(base + CommunicatorFields.OLDEST_NUMBER_OFFSET, 0L);
            VarHandle.storeStoreFence();
            backlog.store(oldest, base + CommunicatorFields.OLDEST_OFFSET);
            TraceMemory.release(base + CommunicatorFields.OLDEST_NUMBER_OFFSET, oldest + 1);
        }
    }

    /** Counts a launch. Called before a kernel runs all operations that were enqueued since the previous launch. */
    public synchronized void launched() {
        launches++;
    }

    /** {@return whether {@link #ran} has an effect} */
    public boolean isRecorded() {
        return recorder != null;
    }

    /**
     * Records the start and the end of the kernel that ran the operations from {@code first} to {@code end}, exclusive.
     */
    public synchronized void ran(long first, long end, long began, long ended) {
        for (long operation = first; recorder != null && operation < end; operation++) {
            recorder.ran(operation, began, ended);
        }
    }

    /** Stores the begin of the operation's kernel. The kernels of all earlier operations have begun, too. */
    public synchronized void started(long operation) {
        count(operation, CommunicatorFields.BEGUN_OFFSET);
        stamp(operation, CommunicatorFields.STARTED_OFFSET);
    }

    /** Stores that the operation's kernel has ended. The kernels of all earlier operations have ended, too. */
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

    /** Closes the communicator's block. Called when the communicator is destroyed. May be called twice. */
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
     * Unfinished operations that are no longer in the file, because later operations have overwritten their entries. A
     * program may enqueue thousands of operations before the first of them ends. The backlog grows to {@value #MAX}
     * operations, and does not remember later operations. Used under the communicator's lock.
     */
    static final class OperationBacklog {

        static final int MAX = 1 << 14;
        private static final int MIN = 64;
        private static final int WORDS = OPERATION_BYTES / Long.BYTES;

        private long[] entries = {};
        /** Number of each entry's operation, plus 1; 0 if the entry is empty. */
        private long[] numbers = {};

        /** Remembers the operation that is stored at an address. Does nothing if too many operations have not ended. */
        void add(long operation, long ended, long address) {
            while (operation - ended >= numbers.length) {
                if (numbers.length == MAX) {
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
            numbers = new long[Math.max(MIN, 2 * oldNumbers.length)];
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

    /** A short name that is stored repeatedly. It is encoded once, so that storing allocates nothing. */
    public static final class TraceName {

        private final String text;
        private final long[] words = new long[CommunicatorFields.OPERATION_NAME.bytes() / Long.BYTES];
        /** Index in {@link CommunicatorFields#FUNCTIONS}; -1 if the functions do not include the name. */
        private final int function;

        private TraceName(String text) {
            this.text = text;
            function = CommunicatorFields.FUNCTIONS.stream()
                    .map(each -> each.toLowerCase(Locale.ROOT))
                    .toList()
                    .indexOf(text.replace("_", ""));
            byte[] encoded = Arrays.copyOf(text.getBytes(StandardCharsets.UTF_8), words.length * Long.BYTES);
            ByteBuffer.wrap(encoded).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(words);
        }

        /** Returns a name. Text that is longer than {@link CommunicatorFields#OPERATION_NAME} is cut. */
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
