package org.millrace.cli.perf;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.function.Consumer;
import org.millrace.Device;
import org.millrace.DeviceStream;
import org.millrace.cli.run.RunDeadline;

/**
 * Fills and checks device memory from the host, one piece after the other, so that the host needs no copy of a whole
 * operand. On the emulated device the copies are plain copies of host memory.
 */
final class OperandMemory {

    /** Size of a piece, in bytes. It is a multiple of every element size. */
    private static final long PIECE = 4L << 20;
    /** Byte that yields NaN in every floating-point type. */
    private static final byte POISON = (byte) 0xFF;

    private final Device device;
    private final DeviceStream stream;
    private final RunDeadline deadline;
    private final MemorySegment host;
    private final MemorySegment copy;
    private final MemorySegment word;

    OperandMemory(Device device, DeviceStream stream, RunDeadline deadline, Arena arena) {
        this.device = device;
        this.stream = stream;
        this.deadline = deadline;
        host = arena.allocate(PIECE, 64);
        copy = arena.allocate(PIECE, 64);
        word = device.allocate(Long.BYTES, arena);
    }

    private interface PieceAction {
        void apply(MemorySegment host, MemorySegment device, long offset);
    }

    private void forEachPiece(MemorySegment memory, PieceAction action) {
        for (long offset = 0; offset < memory.byteSize(); offset += PIECE) {
            long bytes = Math.min(PIECE, memory.byteSize() - offset);
            action.apply(host.asSlice(0, bytes), memory.asSlice(offset, bytes), offset);
        }
    }

    void fill(MemorySegment memory, Reference reference, int rank) {
        int bytes = reference.elementBytes();
        forEachPiece(memory, (piece, target, offset) -> {
            reference.fill(piece, rank, offset / bytes, piece.byteSize() / bytes);
            upload(piece, target);
        });
    }

    /** Fills memory with the byte {@link #POISON}, so that the memory's old content cannot pass for a result. */
    void poison(MemorySegment memory) {
        forEachPiece(memory, (piece, target, offset) -> upload(piece.fill(POISON), target));
    }

    /** Returns the number of elements that differ from the expected result. */
    long countWrong(MemorySegment memory, Reference reference, List<CollectiveCall.Part> parts) {
        int element = reference.elementBytes();
        long[] wrong = {0};
        long begin = 0;
        for (CollectiveCall.Part part : parts) {
            long bytes = part.count() * element;
            forEachPiece(memory.asSlice(begin, bytes), (piece, source, offset) -> {
                download(source, piece);
                long first = part.first() + offset / element;
                wrong[0] += part.source() == CollectiveCall.Part.ALL
                        ? reference.countWrong(piece, first, piece.byteSize() / element)
                        : countDifferent(piece, reference, part.source(), first);
            });
            begin += bytes;
        }
        return wrong[0];
    }

    private long countDifferent(MemorySegment piece, Reference reference, int source, long first) {
        int bytes = reference.elementBytes();
        MemorySegment expected = copy.asSlice(0, piece.byteSize());
        reference.fill(expected, source, first, piece.byteSize() / bytes);
        long different = 0;
        // Each iteration searches for the next difference. Usually there are few differences. If there are many, the
        // time of the search does not matter.
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

    /** Copies a word to the device, runs operations on it there, and returns its new value. */
    long exchange(long value, Consumer<MemorySegment> operations) {
        MemorySegment here = host.asSlice(0, Long.BYTES);
        here.set(ValueLayout.JAVA_LONG, 0, value);
        upload(here, word);
        operations.accept(word);
        download(word, here);
        return here.get(ValueLayout.JAVA_LONG, 0);
    }

    private void upload(MemorySegment piece, MemorySegment target) {
        device.copyToDevice(piece, target, stream);
        stream.synchronize(deadline.remaining());
    }

    private void download(MemorySegment source, MemorySegment piece) {
        device.copyToHost(source, piece, stream);
        stream.synchronize(deadline.remaining());
    }
}
