package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.MemoryLayout.PathElement.sequenceElement;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.loadMeta;
import org.millrace.ffi.device.netUnpackMeta;
import org.millrace.foreign.PolledStruct;
import org.millrace.foreign.Words;

/**
 * {@code netUnpackMeta}: for each of 16 slices, the list of the pieces of data that the kernel copies out of the bounce
 * buffer, with their destinations.
 *
 * <pre>
 *    0                 32768                            524288                              524416
 *    +-----------------+-----------------+---- - - -----+--------+--------+---- - - --+--------+
 *    | slice 0         | slice 1         |     ...      | cnt[0] | cnt[1] |    ...    | cnt[15]|
 *    | 2048 pieces     | 2048 pieces     |              |        |        |           |        |
 *    +-----------------+-----------------+---- - - -----+--------+--------+---- - - --+--------+
 *                                                         u64
 *    piece
 *    0           4           8                       16
 *    +-----------+-----------+-----------------------+
 *    | src_off   | len       | dst_off               |
 *    +-----------+-----------+-----------------------+
 *      u32         u32         u64
 * </pre>
 *
 * <p>
 * The proxy writes the struct, and the receiving kernel reads it. The proxy stores the pieces of a slice before the
 * slice's count. The proxy stores the pieces and the count before the release of {@code tail} that covers the slice
 * ({@link RecvMem#tailRelease}). When {@code head} has passed the slice, the proxy may overwrite its pieces and its
 * count. The kernel never resets a count. Facts: NCCL 2.28 {@code device/network/unpack/unpack_defs.h}.
 */
public final class UnpackMeta extends PolledStruct {
    public static final long BYTES = netUnpackMeta.sizeof();
    /** Required alignment in bytes: the kernel loads a piece in one access. */
    public static final long ALIGNMENT = loadMeta.sizeof();
    /** Number of slices. The kernel and the proxy use the slices cyclically. */
    public static final int SLICES = device_h.NCCL_NET_DEVICE_UNPACK_MAX_QUEUE_DEPTH();
    /** Maximum number of pieces of a slice. */
    public static final int MAX_PIECES = device_h.NET_UNPACK_MAX_SLICE_PAGES();

    private static final long PIECE_BYTES = loadMeta.sizeof();
    private static final long SRC_OFF_0 = pieceOffset("src_off");
    private static final long LEN_0 = pieceOffset("len");
    private static final long DST_OFF_0 = pieceOffset("dst_off");
    private static final long COUNT_0 = netUnpackMeta.layout().byteOffset(groupElement("cnt"));

    private UnpackMeta(MemorySegment segment) {
        super("netUnpackMeta", segment, BYTES, ALIGNMENT);
    }

    /** {@return a view of the lists of exactly {@link #BYTES} bytes, aligned to {@link #ALIGNMENT}} */
    public static UnpackMeta of(MemorySegment segment) {
        return new UnpackMeta(segment);
    }

    /**
     * Sets a piece of a slice.
     *
     * @param sourceOffset offset of the piece in the bounce buffer in bytes, an unsigned 32-bit number
     */
    public void piece(int slice, int piece, int sourceOffset, int length, long targetOffset) {
        long at = at(slice, piece);
        Words.INT.set(Words.MEMORY, base + SRC_OFF_0 + at, sourceOffset);
        Words.INT.set(Words.MEMORY, base + LEN_0 + at, length);
        Words.LONG.set(Words.MEMORY, base + DST_OFF_0 + at, targetOffset);
    }

    /** {@return the offset of a piece in the bounce buffer in bytes, an unsigned 32-bit number} */
    public int sourceOffset(int slice, int piece) {
        return (int) Words.INT.get(Words.MEMORY, base + SRC_OFF_0 + at(slice, piece));
    }

    /** {@return the number of bytes of a piece} */
    public int length(int slice, int piece) {
        return (int) Words.INT.get(Words.MEMORY, base + LEN_0 + at(slice, piece));
    }

    /** {@return the offset at which a piece belongs in the slice, in bytes} */
    public long targetOffset(int slice, int piece) {
        return (long) Words.LONG.get(Words.MEMORY, base + DST_OFF_0 + at(slice, piece));
    }

    /**
     * Sets the number of pieces of a slice, after the pieces. The proxy's later release of tail publishes the pieces
     * and their number. A reader can also use {@link #countAcquire}, which pairs with this release.
     */
    public void countRelease(int slice, long pieces) {
        Words.LONG.setRelease(Words.MEMORY, base + COUNT_0 + (long) Objects.checkIndex(slice, SLICES) * Long.BYTES,
                pieces);
    }

    /** {@return the number of pieces of a slice; the pieces are visible after this acquire} */
    public long countAcquire(int slice) {
        return (long) Words.LONG.getAcquire(Words.MEMORY,
                base + COUNT_0 + (long) Objects.checkIndex(slice, SLICES) * Long.BYTES);
    }

    private static long at(int slice, int piece) {
        int index = Objects.checkIndex(slice, SLICES) * MAX_PIECES + Objects.checkIndex(piece, MAX_PIECES);
        return index * PIECE_BYTES;
    }

    private static long pieceOffset(String field) {
        return netUnpackMeta.layout()
                .byteOffset(groupElement("mem"), sequenceElement(0), sequenceElement(0), groupElement("piece"),
                        groupElement(field));
    }
}
