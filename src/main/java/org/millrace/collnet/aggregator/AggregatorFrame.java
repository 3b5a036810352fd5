package org.millrace.collnet.aggregator;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.Locale;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameHeader;
import org.millrace.net.connection.HelloFormat;

/**
 * The words of a frame between a rank and an aggregator. They come from another process, and are checked before they
 * are believed.
 *
 * <pre>
 *   0          1      2           3               4              5
 *  +----------+------+-----------+---------------+--------------+---+
 *  | sequence | what | bytes of  | offset of the | bytes of     | 0 |
 *  | of piece |      | the piece | piece         | each rank    |   |
 *  +----------+------+-----------+---------------+--------------+---+
 *
 *   what:  31    24 23   16 15   8 7                0
 *         +--------+-------+------+------------------+
 *         | kind   | op    | type | function, from 1 |
 *         +--------+-------+------+------------------+
 * </pre>
 *
 * The first frame of a rank is a hello: its sequence is {@link #HELLO}, and the words behind it are the number of
 * ranks, the rank, and the number of the aggregator; its payload is the address of the rank's listener.
 */
final class AggregatorFrame {

    /** Sequence of a hello, with the version of all this. */
    static final long HELLO = 0x4d52_4147_4752_0001L;

    /** What a rank gives. */
    static final int CONTRIBUTION = 0;
    /** What the aggregator gives back. */
    static final int RESULT = 1;
    /** The ranks asked for different things: the payload says so. Nothing follows. */
    static final int MISMATCH = 2;
    /** A rank is lost: the payload says which. Nothing follows. */
    static final int LOST = 3;

    static final int SEQUENCE = 0;
    static final int WHAT = 1;
    static final int BYTES = 2;
    static final int WINDOW_OFFSET = 3;
    static final int BYTES_PER_RANK = 4;

    /** Pieces of a rank that an aggregator has at a time. */
    static final int PIECES = 16;
    static final long LONGEST_PIECE = 256 << 10;
    /** Longest text of a mismatch or a loss. */
    static final int TEXT_BYTES = 1024;
    /** More than any group has. */
    static final int MOST_RANKS = 1 << 16;

    private static final int KIND_SHIFT = 24;
    private static final int OP_SHIFT = 16;
    private static final int TYPE_SHIFT = 8;
    private static final int BYTE = 0xff;
    /** In a key: from an aggregator to a rank. */
    private static final long BACK = 1L << 62;

    /** What is asked for. The ordinals travel. */
    enum Function {
        ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER
    }

    private AggregatorFrame() {}

    static long what(int kind, Function function, DataType type, ReduceOp.BuiltIn op) {
        return (long) kind << KIND_SHIFT | (long) op.code() << OP_SHIFT | (long) type.code() << TYPE_SHIFT
                | function.ordinal() + 1;
    }

    static int kind(long what) {
        return (int) (what >>> KIND_SHIFT & BYTE);
    }

    static long withKind(long what, int kind) {
        return what & ~((long) BYTE << KIND_SHIFT) | (long) kind << KIND_SHIFT;
    }

    /** Whether a contribution's words say something that can be done for so many ranks. */
    static boolean isPlausible(FrameHeader header, int ranks) {
        long what = header.word(WHAT);
        long bytes = header.word(BYTES);
        long function = (what & BYTE) - 1;
        long type = what >>> TYPE_SHIFT & BYTE;
        long op = what >>> OP_SHIFT & BYTE;
        long offset = header.word(WINDOW_OFFSET);
        long partBytes = header.word(BYTES_PER_RANK);
        return what >>> KIND_SHIFT == CONTRIBUTION && function >= 0 && function < Function.values().length
                && type < DataType.values().length && op < ReduceOp.BuiltIn.values().length
                && op != ReduceOp.BuiltIn.AVG.code() && bytes > 0 && bytes <= LONGEST_PIECE
                && bytes % type(what).bytes() == 0 && offset >= 0 && offset <= Long.MAX_VALUE - bytes && partBytes >= 0
                && partBytes <= Long.MAX_VALUE / ranks
                && (function(what) == Function.ALL_REDUCE || offset + bytes <= partBytes * ranks);
    }

    static Function function(long what) {
        return Function.values()[(int) (what & BYTE) - 1];
    }

    static DataType type(long what) {
        return DataType.ofCode((int) (what >>> TYPE_SHIFT & BYTE));
    }

    static ReduceOp.BuiltIn op(long what) {
        return ReduceOp.BuiltIn.values()[(int) (what >>> OP_SHIFT & BYTE)];
    }

    /** Where what a rank has of a piece begins in it, of functions in which each rank has a part. */
    static long partBegin(long offset, long bytes, long bytesPerRank, int rank) {
        return Math.clamp(rank * bytesPerRank - offset, 0L, bytes);
    }

    static long partEnd(long offset, long bytes, long bytesPerRank, int rank) {
        return Math.clamp((rank + 1) * bytesPerRank - offset, 0L, bytes);
    }

    /** How long a rank's contribution is. */
    static long contributionBytes(Function function, long offset, long bytes, long bytesPerRank, int rank) {
        return function == Function.ALL_GATHER
                ? partEnd(offset, bytes, bytesPerRank, rank) - partBegin(offset, bytes, bytesPerRank, rank)
                : bytes;
    }

    /** How long a rank's result is. */
    static long resultBytes(Function function, long offset, long bytes, long bytesPerRank, int rank) {
        return function == Function.REDUCE_SCATTER
                ? partEnd(offset, bytes, bytesPerRank, rank) - partBegin(offset, bytes, bytesPerRank, rank)
                : bytes;
    }

    static ConnectionKey toAggregator(long group, int rank) {
        return new ConnectionKey(group, rank);
    }

    static ConnectionKey toRank(long group, int rank, int aggregator) {
        return new ConnectionKey(group, BACK | (long) aggregator << Integer.SIZE | rank);
    }

    /** What a listener of an aggregator knows its ranks by, from what the user says: without it everybody knows it. */
    static byte[] secret(String ofUser) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(("millrace\n" + ofUser).getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
            return Arrays.copyOf(mac.doFinal("collnet aggregator".getBytes(StandardCharsets.UTF_8)),
                    HelloFormat.SECRET_BYTES);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("HmacSHA256 is missing, which every Java platform must have", e);
        }
    }

    /** What a frame asks for, for messages. */
    static String describe(long what, long offset, long bytes, long bytesPerRank) {
        return function(what).name().toLowerCase(Locale.ROOT).replace('_', '-') + " of bytes " + offset + " to "
                + (offset + bytes) + (bytesPerRank == 0 ? "" : ", " + bytesPerRank + " a rank") + ", "
                + type(what).label() + ", " + op(what).label();
    }
}
