package org.millrace.proxy.unpack;

import org.millrace.abi.UnpackMeta;
import org.millrace.proxy.ProxyException;

/**
 * Holds the pieces of one slice against what a kernel may be told: it follows every list blindly. Pieces come in the
 * order of their targets, each begins where the one before ended, and together they are the slice; so none overlaps
 * another, and none is missing.
 */
public final class PieceCheck {

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
     * @param source of its bytes in the bounce buffer, unsigned
     * @param target where in the slice it goes
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
        return new ProxyException("piece " + pieces + ", " + bytes + " bytes from " + from + " of the bounce buffer to "
                + target + " of the slice, " + "is refused: " + why);
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
