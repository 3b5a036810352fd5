package org.millrace.trace;

/**
 * A communicator's block, and the ring of its last operations.
 *
 * <pre>
 *   16     24     28     32        64       72         128        136       144        152     160
 *   +------+------+------+-------+-+--------+--------+-+----------+---------+----------+-------+-------+
 *   | hash | rank | size | nodes | | opened | closed | | enqueued | kernels | function | begun | ended |
 *   +------+------+------+-------+-+--------+--------+-+----------+---------+----------+-------+-------+
 *   168              176            184              192 256    384                512
 *   +----------------+--------------+----------------+---+------+------------------+-------------- - -
 *   | disagrees with | disagrees at | number of the  |   | name | oldest operation | 32 operations
 *   |                |              | oldest, plus 1 |   |      | that is pending  |
 *   +----------------+--------------+----------------+---+------+------------------+-------------- - -
 *
 *   an operation:
 *   0          8       16      24     28         32     36     40         48        56      64      96        104
 *   +----------+-------+-------+------+----------+------+------+----------+---------+-------+-------+---------+-------
 *   | sequence | bytes | count | type | channels | peer | root | enqueued | started | ended | name  | started | ended
 *   +----------+-------+-------+------+----------+------+------+----------+---------+-------+-------+---------+-------
 *                                                                                                    of each channel: bits
 *   112         128
 *   +-----------+
 *   | algorithm |
 *   +-----------+
 * </pre>
 *
 * <p>
 * Operation n is entry {@code n % 32}; {@code enqueued} counts them, and is stored last, with release. One whose kernel
 * has not ended when its entry is needed for another moves to the place of the oldest once it is that: it is what
 * everybody may be waiting in. Times are 0 until something happens. The shim writes operations of NCCL's itself
 * ({@code src/main/c/operations.h}).
 */
public final class CommunicatorFields {

    public static final int SIZE_OFFSET = 28;
    public static final int NODES_OFFSET = 32;
    public static final int ENQUEUED_OFFSET = 128;
    /** 1 if it is told when each operation's kernel begins and ends. */
    public static final int KERNELS_OFFSET = 136;
    /** When the program's function was called that the kernels' thread is in; 0 if it is in none. */
    public static final int FUNCTION_OFFSET = 144;
    /** How many operations' kernels have begun, and how many have ended, if that is told: they run in order. */
    public static final int BEGUN_OFFSET = 152;
    public static final int ENDED_COUNT_OFFSET = 160;
    /** The rank that was found to run another operation, plus 1; 0 if none was. */
    public static final int DISAGREES_WITH_OFFSET = 168;
    /** The number of the collective in which it does, plus 1; 0 if it is a send or receive. */
    public static final int DISAGREES_AT_OFFSET = 176;
    /** Of the operation that has moved to {@link #OLDEST_OFFSET}, plus 1; 0 if none has. */
    public static final int OLDEST_NUMBER_OFFSET = 184;
    public static final int NAME_OFFSET = 256;
    public static final int NAME_BYTES = 128;
    public static final int OLDEST_OFFSET = 384;

    public static final int OPERATION_BYTES = 128;
    /** Operations that are remembered; a power of two. */
    public static final int OPERATIONS = TraceLayout.RING_BYTES / OPERATION_BYTES;

    public static final int SEQUENCE_OFFSET = 0;
    public static final int BYTES_OFFSET = 8;
    public static final int COUNT_OFFSET = 16;
    /** NCCL's number of the type of elements; -1 if not known. */
    public static final int TYPE_OFFSET = 24;
    public static final int CHANNELS_OFFSET = 28;
    /** Of a send or receive; -1 otherwise. */
    public static final int PEER_OFFSET = 32;
    /** -1 if there is none. */
    public static final int ROOT_OFFSET = 36;
    public static final int ENQUEUED_TIME_OFFSET = 40;
    public static final int STARTED_OFFSET = 48;
    public static final int ENDED_OFFSET = 56;
    public static final int OPERATION_NAME_OFFSET = 64;
    public static final int OPERATION_NAME_BYTES = 32;
    public static final int CHANNELS_STARTED_OFFSET = 96;
    public static final int CHANNELS_ENDED_OFFSET = 104;
    /** Its algorithm and protocol; empty if not known. */
    public static final int HOW_OFFSET = 112;
    public static final int HOW_BYTES = 16;

    private CommunicatorFields() {}
}
