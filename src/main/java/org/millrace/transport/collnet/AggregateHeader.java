package org.millrace.transport.collnet;

import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;

/**
 * The words of a frame between a rank and an aggregator: {@code 0 sequence | 1 count | 2 type | 3 op}. They come from
 * another process, and are checked before they are believed.
 */
final class AggregateHeader {

    private static final int SEQUENCE = 0;
    private static final int COUNT = 1;
    private static final int TYPE = 2;
    private static final int OP = 3;
    private static final ReduceOp.BuiltIn[] OPS = ReduceOp.BuiltIn.values();

    private AggregateHeader() {}

    static void write(FrameHeader header, long sequence, long count, DataType type, ReduceOp.BuiltIn op) {
        header.word(SEQUENCE, sequence);
        header.word(COUNT, count);
        header.word(TYPE, type.code());
        header.word(OP, op.code());
        header.payloadBytes(count * type.bytes());
    }

    /** Throws if a frame is not the next one, or too long. */
    static void check(FrameHeader header, long sequence, long slotBytes, Object from) {
        long type = header.word(TYPE);
        long op = header.word(OP);
        boolean known = type >= 0 && type < DataType.values().length && op >= 0 && op < OPS.length;
        if (header.word(SEQUENCE) != sequence || !known || header.payloadBytes() > slotBytes || header.word(COUNT) < 0
                || header.word(COUNT) > slotBytes
                || header.payloadBytes() != header.word(COUNT) * type(header).bytes()) {
            throw new ConnectionException("aggregator, " + from + ": unexpected frame: request " + header.word(SEQUENCE)
                    + " instead of " + sequence + ", type " + type + ", op " + op + ", " + header.word(COUNT)
                    + " elements in " + header.payloadBytes() + " bytes");
        }
    }

    static long count(FrameHeader header) {
        return header.word(COUNT);
    }

    static DataType type(FrameHeader header) {
        return DataType.ofCode((int) header.word(TYPE));
    }

    static ReduceOp.BuiltIn op(FrameHeader header) {
        return OPS[(int) header.word(OP)];
    }
}
