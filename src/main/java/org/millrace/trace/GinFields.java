package org.millrace.trace;

/**
 * A GIN context's block: what its kernels posted, by kind, and its queues.
 *
 * <pre>
 *   16             24     28      32        36             64       72         128     (descriptors by kind)   512
 *   +--------------+------+-------+---------+------------+-+--------+--------+-+-------+---------+- - -+-----+---- - -
 *   | communicator | rank | peers | context | queue size | | opened | closed | | puts  | signals | ... |     | queues
 *   +--------------+------+-------+---------+------------+-+--------+--------+-+-------+---------+- - -+-----+---- - -
 *
 *   a queue:  taken (8), completed (8), last change (8), 0 (8)
 * </pre>
 */
public final class GinFields {

    public static final int PEERS_OFFSET = 28;
    public static final int CONTEXT_OFFSET = 32;
    public static final int QUEUE_SIZE_OFFSET = 36;
    /** How many descriptors there were of each {@link Kind}. */
    public static final int KINDS_OFFSET = 128;
    public static final int NAME_OFFSET = 384;
    public static final int NAME_BYTES = 128;

    public static final int QUEUE_BYTES = 32;
    /** Queues that are written down; those of further peers are not. */
    public static final int QUEUES = TraceLayout.RING_BYTES / QUEUE_BYTES;

    public static final int QUEUE_TAKEN_OFFSET = 0;
    public static final int QUEUE_COMPLETED_OFFSET = 8;
    public static final int QUEUE_LAST_CHANGE_OFFSET = 16;

    public enum Kind implements Labelled {
        /** Of bytes of a window. */
        PUT,
        /** Out of the descriptor itself. */
        VALUE,
        /** Alone, without bytes. */
        SIGNAL,
        /** Of bytes of a peer's window. */
        GET,
        /** Of what came before. */
        FLUSH,
        /** Puts and values that brought a signal with them; they are counted above as well. */
        SIGNALLED,
        /** Signals of all these that were counted up at the peer without a frame. */
        REACHED;
    }

    private GinFields() {}
}
