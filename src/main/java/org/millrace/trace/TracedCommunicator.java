package org.millrace.trace;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TraceLayout.CommunicatorFields;

/**
 * A communicator, as found in the trace of its process.
 *
 * @param hash      hash that all ranks of the communicator share
 * @param name      name that the program has set for the communicator; may be empty
 * @param opened    time of the opening, in nanoseconds of the host's clock
 * @param kernels   whether the start and the end of each operation's kernel are recorded
 * @param function  time since which the thread that runs the kernels has been in a host function; 0 if the thread is in
 *                  none
 * @param differs   rank that runs another operation than this rank; -1 if no such rank was found
 * @param differsAt number of the collective in which the ranks differ; -1 for a send or receive
 * @param oldest    operation that precedes {@code last} and whose kernel had not ended; null if none is known
 * @param last      last operations, oldest first
 * @param functions for each function that NCCL's RAS counts, in RAS's order, the number of enqueued collectives
 */
public record TracedCommunicator(long hash, int rank, int size, int nodes, String name, TracedState state, long opened,
        long closed, boolean kernels, long function, long begun, long ended, int differs, long differsAt, long enqueued,
        @Nullable Operation oldest, List<Operation> last, Map<String, Long> functions) {

    /**
     * An operation.
     *
     * @param number          number among this communicator's operations that the process has stored
     * @param sequence        number of the operation in the communicator, the same on all ranks; for a send or receive,
     *                        number of the transfer among the transfers to or from the peer; -1 if unknown
     * @param type            NCCL's number of the element type; -1 if unknown
     * @param started         start time of the operation's kernel; 0 if the kernel has not started or was not reported
     * @param channelsStarted one bit for each channel on which the kernel has begun
     * @param how             algorithm and protocol; empty if unknown
     */
    public record Operation(long number, String name, long sequence, long bytes, long count, int type, int channels,
            int peer, int root, long enqueued, long started, long ended, long channelsStarted, long channelsEnded,
            String how) {
    }

    /** Returns the traced operations with kernels that are on the device or will be launched. */
    public List<Operation> pending() {
        return Stream.concat(Stream.ofNullable(oldest), last.stream()).filter(each -> each.number() >= ended).toList();
    }

    /**
     * Returns the current operation: the first operation that has not ended, if the ends of operations are known, and
     * the last operation otherwise. Returns null if no operation is known.
     */
    public @Nullable Operation present() {
        if (last.isEmpty()) {
            return null;
        }
        if (kernels && !pending().isEmpty()) {
            return pending().getFirst();
        }
        boolean told = last.stream().anyMatch(each -> each.ended() != 0);
        return told ? last.stream().filter(each -> each.ended() == 0).findFirst().orElse(last.getLast())
                : last.getLast();
    }

    /**
     * Returns a description of the current operation of a rank of this process, see {@link #present()}:
     * {@code AllReduce #20 (4096 bytes, RING SIMPLE)}; or "unknown" with the reason. Reads one block of the mapped
     * trace.
     *
     * @param hash hash of the communicator; 0 if unknown
     * @param rank this rank; it selects the communicator if several ranks of one communicator are in this process
     */
    public static String present(long hash, int rank) {
        ProcessTrace own = ProcessTrace.current();
        List<Long> open = own == null ? List.of()
                : own.blocks()
                        .stream()
                        .filter(at -> TraceMemory.getInt(at + TraceLayout.TYPE_OFFSET) == TraceLayout.COMMUNICATOR
                                && TraceMemory.getInt(at + TraceLayout.STATE_OFFSET) == TraceLayout.OPEN
                                && (hash == 0 || TraceMemory.get(at + TraceLayout.COMMUNICATOR_OFFSET) == hash))
                        .toList();
        List<Long> ofRank = open.stream()
                .filter(at -> hash != 0 && TraceMemory.getInt(at + TraceLayout.RANK_IN_GROUP_OFFSET) == rank)
                .toList();
        List<Long> certain = ofRank.size() == 1 ? ofRank : open;
        if (certain.size() > 1) {
            return "unknown (any of " + certain.size() + " communicators of this process may own the connection)";
        }
        TracedCommunicator one = certain.isEmpty() ? null
                : parse(TraceBytes.copy(certain.getFirst(), TraceLayout.BLOCK_BYTES),
                        TraceBytes.copy(certain.getFirst(), TraceLayout.RECORD_BYTES));
        Operation present = one == null ? null : one.present();
        return present == null ? "unknown (this process's trace has none of the communicator)" : Verdict.words(present);
    }

    /**
     * @param afterwards beginning of the block, read once more after the block. A comparison shows the entries that may
     *                   have been overwritten during the first reading
     */
    static @Nullable TracedCommunicator parse(TraceBytes block, TraceBytes afterwards) {
        TracedState state = TracedState.of(block.intAt(TraceLayout.STATE_OFFSET));
        if (state == null) {
            return null;
        }
        long enqueued = block.countAt(CommunicatorFields.ENQUEUED_OFFSET);
        return new TracedCommunicator(block.longAt(TraceLayout.COMMUNICATOR_OFFSET),
                block.intAt(TraceLayout.RANK_IN_GROUP_OFFSET), block.intAt(CommunicatorFields.SIZE_OFFSET),
                block.intAt(CommunicatorFields.NODES_OFFSET), block.textAt(CommunicatorFields.NAME), state,
                block.longAt(TraceLayout.OPENED_OFFSET), block.longAt(TraceLayout.CLOSED_OFFSET),
                block.intAt(CommunicatorFields.KERNELS_OFFSET) != 0, block.longAt(CommunicatorFields.FUNCTION_OFFSET),
                block.countAt(CommunicatorFields.BEGUN_OFFSET), block.countAt(CommunicatorFields.ENDED_COUNT_OFFSET),
                block.intAt(CommunicatorFields.DISAGREES_WITH_OFFSET) - 1,
                block.longAt(CommunicatorFields.DISAGREES_AT_OFFSET) - 1, enqueued, oldest(block, afterwards),
                operations(block, enqueued, afterwards.countAt(CommunicatorFields.ENQUEUED_OFFSET)), functions(block));
    }

    private static Map<String, Long> functions(TraceBytes block) {
        Map<String, Long> functions = new LinkedHashMap<>();
        for (String name : CommunicatorFields.FUNCTIONS) {
            functions.put(name, block.countAt(CommunicatorFields.FUNCTIONS_OFFSET + functions.size() * Long.BYTES));
        }
        return functions;
    }

    private static @Nullable Operation oldest(TraceBytes block, TraceBytes afterwards) {
        long number = block.longAt(CommunicatorFields.OLDEST_NUMBER_OFFSET) - 1;
        boolean isWhole = number == afterwards.longAt(CommunicatorFields.OLDEST_NUMBER_OFFSET) - 1;
        return isWhole && number >= block.countAt(CommunicatorFields.ENDED_COUNT_OFFSET)
                ? operation(number, block.slice(CommunicatorFields.OLDEST_OFFSET, CommunicatorFields.OPERATION_BYTES))
                : null;
    }

    private static List<Operation> operations(TraceBytes block, long enqueued, long enqueuedAfterwards) {
        int kept = CommunicatorFields.OPERATIONS;
        long first = Math.max(0, Math.max(enqueued, enqueuedAfterwards) + 1 - kept);
        List<Operation> last = new ArrayList<>();
        for (long number = Math.max(first, enqueued - kept); number < enqueued; number++) {
            last.add(operation(number,
                    block.slice(
                            TraceLayout.RECORD_BYTES + (int) (number & kept - 1) * CommunicatorFields.OPERATION_BYTES,
                            CommunicatorFields.OPERATION_BYTES)));
        }
        return Collections.unmodifiableList(last);
    }

    private static Operation operation(long number, TraceBytes entry) {
        return new Operation(number, entry.textAt(CommunicatorFields.OPERATION_NAME),
                entry.longAt(CommunicatorFields.SEQUENCE_OFFSET), entry.longAt(CommunicatorFields.BYTES_OFFSET),
                entry.longAt(CommunicatorFields.COUNT_OFFSET), entry.intAt(CommunicatorFields.TYPE_OFFSET),
                entry.intAt(CommunicatorFields.CHANNELS_OFFSET), entry.intAt(CommunicatorFields.PEER_OFFSET),
                entry.intAt(CommunicatorFields.ROOT_OFFSET), entry.longAt(CommunicatorFields.ENQUEUED_TIME_OFFSET),
                entry.longAt(CommunicatorFields.STARTED_OFFSET), entry.longAt(CommunicatorFields.ENDED_OFFSET),
                entry.longAt(CommunicatorFields.CHANNELS_STARTED_OFFSET),
                entry.longAt(CommunicatorFields.CHANNELS_ENDED_OFFSET), entry.textAt(CommunicatorFields.HOW));
    }
}
