package org.millrace.cli.check;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.function.Consumer;
import org.millrace.Device;
import org.millrace.Stream;
import org.millrace.cli.launch.RunDeadline;

/**
 * Fills and checks device memory from the host, in pieces, so that the host needs no second copy of large operands. On
 * the emulated device the copies are plain ones.
 */
public final class OperandMemory {

    /** A multiple of every element's size. */
    private static final long PIECE = 4L << 20;
    /** NaN in every floating-point type. */
    private static final byte POISON = (byte) 0xFF;

    private final Device device;
    private final Stream stream;
    private final RunDeadline deadline;
    private final int rank;
    private final int ranks;
    private final MemorySegment host;
    private final MemorySegment copy;
    private final MemorySegment word;

    public OperandMemory(Device device, Stream stream, RunDeadline deadline, int rank, int ranks, Arena arena) {
        this.device = device;
        this.stream = stream;
        this.deadline = deadline;
        this.rank = rank;
        this.ranks = ranks;
        host = arena.allocate(PIECE, 64);
        copy = arena.allocate(PIECE, 64);
        word = device.allocate(Long.BYTES, arena);
    }

    private interface PieceAction {
        void apply(MemorySegment host, MemorySegment device, long first, long count);
    }

    private void forEachPiece(MemorySegment memory, PerfCase line, PieceAction action) {
        for (long offset = 0; offset < memory.byteSize(); offset += PIECE) {
            long bytes = Math.min(PIECE, memory.byteSize() - offset);
            action.apply(host.asSlice(0, bytes), memory.asSlice(offset, bytes), offset / line.type().bytes(),
                    bytes / line.type().bytes());
        }
    }

    /** Fills with this rank's operands. */
    public void fill(MemorySegment memory, PerfCase line, Reference reference, RandomOperands operands) {
        forEachPiece(memory, line, (piece, target, first, count) -> {
            reference.fill(piece, operands, line.reduction(), rank, ranks, first, count);
            upload(piece, target);
        });
    }

    /** Fills with what no result looks like. */
    public void poison(MemorySegment memory, PerfCase line) {
        forEachPiece(memory, line, (piece, target, first, count) -> upload(piece.fill(POISON), target));
    }

    /**
     * The number of elements that are not what they must be.
     *
     * @param parts what they must be, in the order of the memory
     */
    public long countWrong(MemorySegment memory, PerfCase line, Reference reference, RandomOperands operands,
            List<CollectiveCall.Part> parts) {
        long[] wrong = {0};
        long begin = 0;
        for (CollectiveCall.Part part : parts) {
            long bytes = part.count() * line.type().bytes();
            forEachPiece(memory.asSlice(begin, bytes), line, (piece, source, first, count) -> {
                device.copyToHost(source, piece, stream);
                stream.synchronize(deadline.remaining());
                wrong[0] += part.source() == CollectiveCall.Part.ALL
                        ? reference.countWrong(piece, operands, line.reduction(), ranks, part.first() + first, count)
                        : countDifferent(piece, line, reference, operands, part.source(), part.first() + first, count);
            });
            begin += bytes;
        }
        return wrong[0];
    }

    /** The number of elements that are not exactly those of one rank. */
    private long countDifferent(MemorySegment piece, PerfCase line, Reference reference, RandomOperands operands,
            int source, long first, long count) {
        MemorySegment expected = copy.asSlice(0, piece.byteSize());
        reference.fill(expected, operands, line.reduction(), source, ranks, first, count);
        int bytes = line.type().bytes();
        long different = 0;
        // From one difference to the next: there are few, or nobody minds the time.
        for (long at = 0; at < piece.byteSize(); at += bytes) {
            long mismatch = MemorySegment.mismatch(piece, at, piece.byteSize(), expected, at, piece.byteSize());
            if (mismatch < 0) {
                break;
            }
            different++;
            at += mismatch / bytes * bytes;
        }
        return different;
    }

    /** Gives the device a word, lets operations work on it, and returns what it is then. */
    public long exchange(long value, Consumer<MemorySegment> operations) {
        MemorySegment here = host.asSlice(0, Long.BYTES);
        here.set(ValueLayout.JAVA_LONG, 0, value);
        upload(here, word);
        operations.accept(word);
        device.copyToHost(word, here, stream);
        stream.synchronize(deadline.remaining());
        return here.get(ValueLayout.JAVA_LONG, 0);
    }

    private void upload(MemorySegment piece, MemorySegment target) {
        device.copyToDevice(piece, target, stream);
        stream.synchronize(deadline.remaining());
    }
}
