package org.millrace.proxy;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;
import org.millrace.net.FrameReceiver;
import org.millrace.proxy.spi.ProxyException;

/**
 * The lists of pieces of one connection, for a kernel that gathers its slices from the bounce buffer (UNPACK). The
 * kernel uses one list for each Simple slice. The lists are reused in a cycle. The pieces of a list are stored first,
 * then their number is stored (release). After that the caller moves tail, or lets NCCL's proxy move tail.
 *
 * <p>
 * At most eight steps are in flight. When slice {@code n} is announced to the kernel, the kernel has therefore consumed
 * slice {@code n - 8}. The kernel does not use the lists of later slices yet. The number of pieces in these lists is
 * kept at 0, because of aborted kernels. An aborted kernel processes the rest of its slices without waiting, and
 * distributes 0 pieces to each warp. If a list still had an old number of pieces, the kernel would search for the end
 * of the list forever.
 */
public final class SliceLists {

    private final UnpackMeta meta;
    private final UnpackHandle handle;
    private final PieceCheck check;
    /** Ordinal of the next slice with a list to clear. To clear a list means to set its number of pieces to 0. */
    private long uncleared;
    private long ordinal;
    private int slice;

    /**
     * Creates lists that are all empty.
     *
     * @param meta         zeroed memory of {@link UnpackMeta#BYTES} bytes
     * @param handle       initialized handle of the kernel, of {@link UnpackHandle#BYTES} bytes
     * @param bounceBytes  size of the bounce buffer
     * @param firstOrdinal ordinal of the first slice: the handle's head plus 1
     */
    public SliceLists(MemorySegment meta, MemorySegment handle, long bounceBytes, long firstOrdinal) {
        this.meta = UnpackMeta.of(meta);
        this.handle = UnpackHandle.of(handle);
        this.check = new PieceCheck(bounceBytes);
        this.uncleared = firstOrdinal + 1;
    }

    /**
     * Begins a slice's list.
     *
     * @param number ordinal of the slice
     * @param bytes  size of the slice
     * @throws ProxyException if the kernel has already used this slice's list, or the slice is too long
     */
    public void begin(long number, long bytes) {
        long used = handle.headAcquire();
        if (used - number >= 0) {
            throw new ProxyException("the kernel has unpacked slice " + used + " where slice " + number
                    + " is expected: it does not behave like a known kernel of NCCL; run without MILLRACE_UNPACK, "
                    + "and report NCCL's version");
        }
        check.begin(bytes);
        ordinal = number;
        slice = index(number);
    }

    /**
     * Adds a piece to the list.
     *
     * @param source offset of the piece in the bounce buffer, unsigned
     * @param length length of the piece in bytes, unsigned
     * @param target offset of the piece in the slice
     * @throws ProxyException if {@link PieceCheck} refuses the piece
     */
    public void piece(int source, int length, long target) {
        meta.piece(slice, check.next(source, length, target), source, length, target);
    }

    /**
     * Publishes the list. The kernel uses the list when tail has passed the slice. The number of pieces is stored with
     * a release, so that the pieces become visible before the number.
     *
     * @throws ProxyException if pieces are missing
     */
    public void publish() {
        int pieces = check.end();
        for (long last = ordinal + ConnectionLayout.SLOTS; last - uncleared >= 0; uncleared++) {
            if (uncleared != ordinal) {
                meta.countRelease(index(uncleared), 0);
            }
        }
        meta.countRelease(slice, pieces);
    }

    private static int index(long number) {
        return (int) number & UnpackMeta.SLICES - 1;
    }

    /**
     * Checks the pieces of one slice, because a kernel uses every list without checks. Pieces must be in the order of
     * their targets. Each piece must begin at the end of the previous piece, and all pieces together must cover the
     * slice. Therefore no piece overlaps another piece, and no piece is missing.
     */
    public static final class PieceCheck {

        /** Maximum size of a slice that a list can describe, in bytes. */
        public static final long MAX_SLICE_BYTES = 4L << 20;

        private final long bounceBytes;
        private long sliceBytes;
        private long covered;
        private int pieces;

        /** Creates a check for pieces of one bounce buffer. */
        public PieceCheck(long bounceBytes) {
            this.bounceBytes = bounceBytes;
        }

        /**
         * Begins a slice.
         *
         * @throws ProxyException if the size is not possible for a slice
         */
        public void begin(long bytes) {
            if (bytes < 0 || bytes > MAX_SLICE_BYTES) {
                throw new ProxyException("a slice of " + bytes + " bytes: lists are for 0 to " + MAX_SLICE_BYTES
                        + "; set NCCL_BUFFSIZE to 16 MiB or less");
            }
            sliceBytes = bytes;
            covered = 0;
            pieces = 0;
        }

        /**
         * Checks the next piece. Returns its index in the list.
         *
         * @throws ProxyException if a kernel must not use the piece
         */
        public int next(int source, int length, long target) {
            long from = Integer.toUnsignedLong(source);
            long bytes = Integer.toUnsignedLong(length);
            if (bytes == 0 || target != covered || bytes > sliceBytes - covered || from + bytes > bounceBytes
                    || pieces == UnpackMeta.MAX_PIECES) {
                throw refusal(from, bytes, target);
            }
            covered += bytes;
            return pieces++;
        }

        private ProxyException refusal(long from, long bytes, long target) {
            String why;
            if (pieces == UnpackMeta.MAX_PIECES) {
                why = "a list has at most " + pieces + " pieces";
            } else if (bytes == 0) {
                why = "its length is 0";
            } else if (from + bytes > bounceBytes) {
                why = "it ends beyond the bounce buffer of " + bounceBytes + " bytes";
            } else if (target < covered && target >= 0) {
                why = "it overlaps what came before, up to byte " + covered;
            } else if (target < 0 || target + bytes > sliceBytes) {
                why = "it ends beyond the slice of " + sliceBytes + " bytes";
            } else {
                why = "it leaves a gap behind byte " + covered;
            }
            return new ProxyException("piece " + pieces + ", " + bytes + " bytes from " + from
                    + " of the bounce buffer to " + target + " of the slice, " + "is refused: " + why);
        }

        /**
         * Ends the slice. Returns the number of its pieces.
         *
         * @throws ProxyException if the pieces do not cover the whole slice
         */
        public int end() {
            if (covered != sliceBytes) {
                throw new ProxyException("a list of " + pieces + " pieces ends at byte " + covered + " of a slice of "
                        + sliceBytes + " bytes");
            }
            return pieces;
        }
    }

    /**
     * Simple slices that arrive in pages of the bounce buffer and not in their slots. A device gathers such a slice by
     * its list of pages.
     */
    public static final class GatheredSlices {

        private final BouncePages pages;
        private final SliceLists lists;
        private final long threshold;
        private final long[] numbers = new long[ConnectionLayout.SLOTS];
        private final int[] firstPages = new int[ConnectionLayout.SLOTS];
        private final long[] sizes = new long[ConnectionLayout.SLOTS];
        private long received;
        private long published;

        /** @param threshold minimum number of bytes; a smaller slice arrives in its slot */
        public GatheredSlices(BouncePages pages, SliceLists lists, long threshold) {
            this.pages = pages;
            this.lists = lists;
            this.threshold = threshold;
        }

        /** Returns whether the device gathers a slice of this size from pages. The device decides in the same way. */
        boolean takes(long bytes) {
            return bytes > 0 && bytes >= threshold;
        }

        /**
         * Makes a receiver store a slice in pages. The slice is the payload of the header that the receiver returned
         * most recently.
         *
         * @param number ordinal of the slice, as the device counts slices
         */
        void receive(FrameReceiver receiver, long number, long step, long bytes) {
            int index = ConnectionLayout.slot(received++);
            numbers[index] = number;
            firstPages[index] = pages.first(ConnectionLayout.slot(step));
            sizes[index] = bytes;
            pages.receive(receiver, firstPages[index]);
        }

        /** Publishes the list of the oldest slice that has no published list. The slice's payload must have arrived. */
        void arrived() {
            int index = ConnectionLayout.slot(published++);
            pages.publish(lists, numbers[index], firstPages[index], sizes[index]);
        }
    }
}
