package org.millrace;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.operation.Required;

/**
 * Reductions by a {@link ReduceFunction}. The elements of each rank are divided into equal parts, one for each rank. By
 * an all-to-all, each rank receives its part of every rank's elements, and combines these parts in rank order. For an
 * all-reduce, an all-gather distributes the results. For a scan, a second all-to-all returns to each rank its results.
 */
final class HostReduction {

    private final Communicator communicator;
    private final Operand values;
    private final ReduceFunction function;
    /** Number of elements in a part. Some elements at the end of the last parts may be unused. */
    private final long part;

    /** @param operation operation of the program, for messages */
    HostReduction(Communicator communicator, String operation, Operand values, ReduceFunction function) {
        Required.argument(operation, "operand values", values);
        Required.argument(operation, "function", function);
        if (!function.takes(values.type()) || !values.isElementwise()) {
            throw new IllegalArgumentException("rank " + communicator.rank() + ": this ReduceFunction does not take "
                    + values + ": ofLongs takes integers, ofDoubles float and double");
        }
        if (!values.isOnHost(communicator.device())) {
            throw new IllegalArgumentException("rank " + communicator.rank() + ": " + values
                    + " lies on the device, and a ReduceFunction runs on the host: copy it there");
        }
        if (values.memories().stream().anyMatch(MemorySegment::isReadOnly)) {
            throw new IllegalArgumentException("rank " + communicator.rank() + ": " + values
                    + " is read-only, and a ReduceFunction stores its result there");
        }
        this.communicator = communicator;
        this.values = values;
        this.function = function;
        part = Math.ceilDiv(values.count(), communicator.size());
    }

    /** Returns the number of used elements in the part that this rank combines. */
    private long ours() {
        return Math.clamp(values.count() - communicator.rank() * part, 0, part);
    }

    private Operand operand(MemorySegment memory) {
        return Operand.ofHost(memory, values.type());
    }

    private MemorySegment allocate(Arena arena, long parts) {
        return arena.allocate(parts * part * values.type().bytes(), Long.BYTES);
    }

    private MemorySegment number(MemorySegment parts, long rank) {
        long bytes = part * values.type().bytes();
        return parts.asSlice(rank * bytes, bytes);
    }

    @Nullable
    Void allReduce() {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment all = allocate(arena, communicator.size());
            MemorySegment mine = exchanged(arena, all);
            communicator.allGather(operand(number(mine, communicator.size() - 1)), operand(all));
            values.read(all);
            return null;
        }
    }

    /**
     * Scans the elements in place.
     *
     * @param inclusive whether a rank's own elements are part of its result; otherwise rank 0 keeps its elements
     */
    @Nullable
    Void scan(boolean inclusive) {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment all = allocate(arena, communicator.size());
            MemorySegment mine = exchanged(arena, all);
            if (!inclusive) {
                for (int rank = communicator.size() - 1; rank > 0; rank--) {
                    number(mine, rank).copyFrom(number(mine, rank - 1));
                }
            }
            communicator.allToAll(operand(mine), operand(all));
            if (inclusive || communicator.rank() > 0) {
                values.read(all);
            }
            return null;
        }
    }

    /**
     * Receives this rank's part of every rank's elements. Returns one combination for each rank {@code r}, ordered by
     * rank: the combination of the parts of ranks 0 to {@code r}.
     */
    private MemorySegment exchanged(Arena arena, MemorySegment all) {
        values.write(all);
        MemorySegment mine = allocate(arena, communicator.size());
        communicator.allToAll(operand(all), operand(mine));
        for (int rank = 1; rank < communicator.size(); rank++) {
            function.combine(number(mine, rank - 1), number(mine, rank), ours(), values.type());
        }
        return mine;
    }
}
