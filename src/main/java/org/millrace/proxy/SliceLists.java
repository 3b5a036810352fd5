package org.millrace.proxy;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;
import org.millrace.net.FrameReceiver;

/**
 * The lists of one connection. The kernel uses one list for each Simple slice, in a cycle. A list is stored piece by
 * piece, then its count (release). After that the caller moves tail, or lets NCCL's proxy move it.
 *
 * <p>
 * At most eight steps are in flight. When a slice may be announced, the slice eight before it is therefore consumed.
 * Lists further ahead do not belong to the kernel yet, and their counts are kept at 0. An aborted kernel processes the
 * rest of its slices without waiting, with 0 as its number of pages for each warp. If it found an old count, it would
 * search for the list's end forever.
 */
public final class SliceLists {

    private final UnpackMeta meta;
    private final UnpackHandle handle;
    private final PieceCheck check;
    /** The first slice with a list that was not cleared yet. */
    private long uncleared;
    private long ordinal;
    private int slice;

    /**
     * Creates lists that are all empty.
     *
     * @param meta         zeroed memory of {@link UnpackMeta#BYTES} bytes
     * @param handle       initialized handle of the kernel, of {@link UnpackHandle#BYTES} bytes
     * @param firstOrdinal number of the first slice: the handle's head plus 1
     */
    public SliceLists(MemorySegment meta, MemorySegment handle, long bounceBytes, long firstOrdinal) {
        this.meta = UnpackMeta.of(meta);
        this.handle = UnpackHandle.of(handle);
        this.check = new PieceCheck(bounceBytes);
        this.uncleared = firstOrdinal + 1;
    }

    /**
     * Begins a list.
     *
     * @throws ProxyException if the kernel has already used this slice's list, or the slice is too long
     */
    public void begin(long number, long bytes) {
        long used = handle.headAcquire();
        if (used - number >= 0) {
            throw new ProxyException("the kernel has unpacked slice " + used + " where slice " + number
                    + " comes next: it did not do what NCCL's kernels do; run without MILLRACE_UNPACK, and tell us"
                    + " NCCL's version");
        }
        check.begin(bytes);
        ordinal = number;
        slice = index(number);
    }

    /**
     * Adds a piece.
     *
     * @throws ProxyException if a kernel must not receive the piece, see {@link PieceCheck}
     */
    public void piece(int source, int length, long target) {
        meta.piece(slice, check.next(source, length, target), source, length, target);
    }

    /**
     * Publishes the list. The kernel uses it once tail covers its slice. The release of the count orders the count
     * after the pieces.
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
     * Checks that a kernel may receive the pieces of one slice, because a kernel follows every list without checks.
     * Pieces must be in the order of their targets, and each must begin where the previous one ended. Together they
     * must be the slice. Therefore no piece overlaps another, and none is missing.
     */
    public static final class PieceCheck {

        /** Maximum size of a slice for these lists, in bytes. */
        public static final long MAX_SLICE_BYTES = 4L << 20;

        private final long bounceBytes;
        private long sliceBytes;
        private long covered;
        private int pieces;

        /** Creates a check for one bounce buffer. */
        public PieceCheck(long bounceBytes) {
            this.bounceBytes = bounceBytes;
        }

        /**
         * Begins a slice.
         *
         * @throws ProxyException if no slice can have this size
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
         * Adds the next piece.
         *
         * @throws ProxyException if a kernel must not receive the piece
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
                why = "a list has " + pieces + " pieces and not one more";
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
         * Ends the slice.
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
     * Slices of protocol Simple that arrive in pages instead of their slots, and the lists that a device needs to
     * gather them.
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

        /** @param threshold number of bytes; a smaller slice arrives in its slot */
        public GatheredSlices(BouncePages pages, SliceLists lists, long threshold) {
            this.pages = pages;
            this.lists = lists;
            this.threshold = threshold;
        }

        /** Returns whether the device gathers a slice. The device makes the same decision independently. */
        boolean takes(long bytes) {
            return bytes > 0 && bytes >= threshold;
        }

        /**
         * Assigns pages to the payload of the header that was polled last.
         *
         * @param number number of the slice, as the device counts slices
         */
        void receive(FrameReceiver receiver, long number, long step, long bytes) {
            int index = ConnectionLayout.slot(received++);
            numbers[index] = number;
            firstPages[index] = pages.first(ConnectionLayout.slot(step));
            sizes[index] = bytes;
            pages.receive(receiver, firstPages[index]);
        }

        /** Publishes the list of the oldest slice that was received, which has arrived completely. */
        void arrived() {
            int index = ConnectionLayout.slot(published++);
            pages.publish(lists, numbers[index], firstPages[index], sizes[index]);
        }
    }
}
