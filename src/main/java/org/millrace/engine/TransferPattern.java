package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;

/**
 * Operations that consist of sends and receives in a group. Each method passes this rank's transfers to the sink, in
 * the order of the peers' distances or ranks.
 *
 * @param sink receives the transfers; an operation without elements has no transfers
 */
record TransferPattern(int rank, int ranks, Sink sink) {

    /** Receives each transfer, which is a send or a receive. */
    public interface Sink {
        void add(boolean sends, MemorySegment buffer, long count, DataType type, int peer);
    }

    /**
     * Exchanges elements between all ranks: part {@code j} of rank {@code i} becomes part {@code i} of rank {@code j}.
     */
    public void allToAll(MemorySegment send, MemorySegment receive, long count, DataType type) {
        for (int distance = 0; distance < ranks && count > 0; distance++) {
            int to = (rank + distance) % ranks;
            int from = (rank - distance + ranks) % ranks;
            sink.add(true, part(send, to, count, type), count, type, to);
            sink.add(false, part(receive, from, count, type), count, type, from);
        }
    }

    /** Sends the elements of each rank to the root. */
    public void gather(MemorySegment send, MemorySegment receive, long count, DataType type, int root) {
        for (int from = 0; rank == root && from < ranks && count > 0; from++) {
            sink.add(false, part(receive, from, count, type), count, type, from);
        }
        if (count > 0) {
            sink.add(true, send, count, type, root);
        }
    }

    /** Sends part {@code i} of the root's elements to rank {@code i}, for all ranks. */
    public void scatter(MemorySegment send, MemorySegment receive, long count, DataType type, int root) {
        for (int to = 0; rank == root && to < ranks && count > 0; to++) {
            sink.add(true, part(send, to, count, type), count, type, to);
        }
        if (count > 0) {
            sink.add(false, receive, count, type, root);
        }
    }

    private static MemorySegment part(MemorySegment all, int number, long count, DataType type) {
        return all.asSlice(number * count * type.bytes(), count * type.bytes());
    }
}
