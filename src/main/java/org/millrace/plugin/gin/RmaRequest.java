package org.millrace.plugin.gin;

/**
 * What NCCL holds for an operation that it began: where to ask whether it is over.
 *
 * <pre>
 *   63 62 61        48 47        32 31                0
 *  +--+--+------------+------------+-------------------+
 *  | 0| 1| context    | peer       | index in its queue|
 *  +--+--+------------+------------+-------------------+
 * </pre>
 */
final class RmaRequest {

    private static final long MARK = 1L << 62;
    private static final int CONTEXT_SHIFT = 48;
    private static final int PEER_SHIFT = 32;
    private static final int CONTEXT_MASK = (1 << 14) - 1;
    private static final int PEER_MASK = (1 << 16) - 1;

    private RmaRequest() {}

    static long pack(int context, int peer, int index) {
        return MARK | (long) (context & CONTEXT_MASK) << CONTEXT_SHIFT | (long) (peer & PEER_MASK) << PEER_SHIFT
                | Integer.toUnsignedLong(index);
    }

    static int context(long request) {
        if ((request & MARK) == 0) {
            throw new IllegalArgumentException("0x" + Long.toHexString(request) + " is no request of this plugin");
        }
        return (int) (request >>> CONTEXT_SHIFT) & CONTEXT_MASK;
    }

    static int peer(long request) {
        return (int) (request >>> PEER_SHIFT) & PEER_MASK;
    }

    static int index(long request) {
        return (int) request;
    }
}
