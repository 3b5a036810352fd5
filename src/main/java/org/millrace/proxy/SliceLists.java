package org.millrace.proxy;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;
import org.millrace.net.FrameReceiver;

/**
 * The lists of one connection, of which the kernel uses one for each Simple slice, round and round. A list is stored
 * piece by piece, then its count (release), then the caller moves tail, or lets NCCL's proxy do it.
 *
 * <p>
 * At most eight steps are in flight, so that when a slice may be announced the one eight before it is consumed: lists
 * further ahead are not the kernel's yet, and their counts are kept at 0. A kernel that is aborted goes through the
 * rest of its slices without waiting, with 0 as its number of pages for each warp: were it to find an old count it
 * would look for the list's end for ever.
 */
public final class SliceLists {

    private final UnpackMeta meta;
    private final UnpackHandle handle;
    private final PieceCheck check;
    /** The first slice whose list was not cleared yet. */
    private long uncleared;
    private long ordinal;
    private int slice;

    /**
     * Lists that are all empty.
     *
     * @param meta         zeroed memory of {@link UnpackMeta#BYTES} bytes
     * @param handle       the kernel's, of {@link UnpackHandle#BYTES} bytes, filled in
     * @param firstOrdinal of the first slice: the handle's head and 1
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
     * @throws ProxyException if the kernel has used this slice's list already, or the slice is too long
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
     * @throws ProxyException if it must not be shown to a kernel: see {@link PieceCheck}
     */
    public void piece(int source, int length, long target) {
        meta.piece(slice, check.next(source, length, target), source, length, target);
    }

    /**
     * Shows the list to the kernel once tail covers its slice. The release of its count orders it behind its pieces.
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
     * Holds the pieces of one slice against what a kernel may be told: it follows every list blindly. Pieces come in
     * the order of their targets, each begins where the one before ended, and together they are the slice; so none
     * overlaps another, and none is missing.
     */
    public static final class PieceCheck {

        /** The longest slice that the lists are made for. */
        public static final long MAX_SLICE_BYTES = 4L << 20;

        private final long bounceBytes;
        private long sliceBytes;
        private long covered;
        private int pieces;

        /** A check for one bounce buffer. */
        public PieceCheck(long bounceBytes) {
            this.bounceBytes = bounceBytes;
        }

        /**
         * Begins a slice.
         *
         * @throws ProxyException if no slice can have it
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
         * Takes the next piece in.
         *
         * @throws ProxyException if it must not be shown to a kernel
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
         * @throws ProxyException if they are not all of it
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
     * Slices of protocol Simple that arrive in pages instead of their slots, and the lists by which a device gathers
     * them.
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

        /** @param threshold bytes below which a slice arrives in its slot */
        public GatheredSlices(BouncePages pages, SliceLists lists, long threshold) {
            this.pages = pages;
            this.lists = lists;
            this.threshold = threshold;
        }

        /** Whether the device gathers a slice, which it decides for itself alike. */
        boolean takes(long bytes) {
            return bytes > 0 && bytes >= threshold;
        }

        /**
         * Gives the payload of the header last polled its pages.
         *
         * @param number of the slice, as the device counts them
         */
        void receive(FrameReceiver receiver, long number, long step, long bytes) {
            int index = ConnectionLayout.slot(received++);
            numbers[index] = number;
            firstPages[index] = pages.first(ConnectionLayout.slot(step));
            sizes[index] = bytes;
            pages.receive(receiver, firstPages[index]);
        }

        /** The oldest slice that was received has arrived whole: shows the device where. */
        void arrived() {
            int index = ConnectionLayout.slot(published++);
            pages.publish(lists, numbers[index], firstPages[index], sizes[index]);
        }
    }
}
