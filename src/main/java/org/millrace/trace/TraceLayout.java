package org.millrace.trace;

import java.util.List;

/**
 * The trace file that a process writes: a header, followed by blocks of one size. A block describes a connection, a
 * communicator, a GIN context, a silent link or a rank that joins. All numbers are little-endian. All times are values
 * of {@link System#nanoTime}, which all processes of a host share on Linux. Text is UTF-8, padded with zeros.
 *
 * <pre>
 *   0        1024        4096               12288              16384      + 4608     + 9216
 *   +--------+-----------+------------------+------------------+----------+----------+- - -
 *   | header | settings  | 64 agents of 128 | 16 messages of   | block 0  | block 1  |
 *   |        |   (text)  |                  |              256 |          |          |
 *   +--------+-----------+------------------+------------------+----------+----------+- - -
 *
 *   a block:
 *   0       4        8            16                      512                          4608
 *   +-------+--------+------------+-----------------------+------------------------------+
 *   | type  | state  | generation | fields of the type    | ring of the last events      |
 *   +-------+--------+------------+-----------------------+------------------------------+
 * </pre>
 *
 * <p>
 * The file grows by {@value #GROWTH} blocks. All bytes of new blocks are allocated before the header counts the blocks.
 * If a closed block is reused, its generation is incremented. A ring is a circular buffer for the last events of a
 * block. {@code state} is stored last, with release. The description of a block is written before the state, and does
 * not change while the block is open, unless stated below.
 *
 * <p>
 * Each field has one writer:
 * <ul>
 * <li>{@link ProcessTrace}, under its lock, writes the header, settings, messages, types, states and the descriptions
 * of blocks.
 * <li>The heartbeat thread of {@code ProcessTrace} writes the heartbeat, the lock's state, the agents' CPU time and the
 * number of streams of a silent link.
 * <li>The agent's thread writes a connection's counters and ring, and the agent's passes.
 * <li>{@link CommunicatorTrace}, under its lock, writes operations.
 * </ul>
 */
public final class TraceLayout {

    /** Place of a text: its offset, and its maximum length in bytes. */
    record Text(int offset, int bytes) {
    }

    /** "MLRTRACE". */
    public static final long MAGIC = 0x45434152_54524c4dL;
    /** Version of this format. A reader accepts only its own version. */
    public static final int VERSION = 1;

    public static final int HEADER_BYTES = 16 << 10;
    /** Length in bytes of a block's part before the ring. */
    public static final int RECORD_BYTES = 512;
    public static final int RING_BYTES = 4096;
    public static final int BLOCK_BYTES = RECORD_BYTES + RING_BYTES;
    /**
     * Number of blocks that are added when the file grows. The total size of these blocks is a multiple of the page
     * size.
     */
    public static final int GROWTH = 16;
    /** Maximum number of blocks of a file. These blocks occupy 18 MiB. */
    public static final int MAX_BLOCKS = 4096;

    /**
     * Maximum time between two heartbeats, in nanoseconds. After a longer time, a process counts as late. A process
     * with an open block writes its heartbeat ten times a second. A late process has therefore had no core.
     */
    public static final long LATE_NANOS = 300_000_000;

    // Offsets in the header.

    public static final int MAGIC_OFFSET = 0;
    public static final int VERSION_OFFSET = 8;
    public static final int HEADER_BYTES_OFFSET = 12;
    public static final int BLOCK_BYTES_OFFSET = 16;
    /** 1 if connections keep their last steps. */
    public static final int STEPS_OFFSET = 20;
    public static final int PID_OFFSET = 24;
    /** Start time of the process, in clock ticks since the host booted. */
    public static final int START_TICKS_OFFSET = 32;
    /** Number of the PID namespace in which the process has its process ID. */
    public static final int NAMESPACE_OFFSET = 40;
    /**
     * Creation time of the file in milliseconds since 1970. The number at {@link #EPOCH_NANOS_OFFSET} is the same time
     * as a value of {@link System#nanoTime}.
     */
    public static final int EPOCH_MILLIS_OFFSET = 48;
    public static final int EPOCH_NANOS_OFFSET = 56;
    /** Time when the process was last known to run. */
    public static final int HEARTBEAT_OFFSET = 64;
    public static final int BLOCKS_OFFSET = 72;
    public static final int AGENTS_OFFSET = 76;
    /** Number of open blocks. A process that ends without an open block leaves no file. Also read by leftovers.c. */
    public static final int OPEN_OFFSET = 80;
    /** 1 if the process has reported a failure, otherwise 0. Also read by leftovers.c. */
    public static final int FAILED_OFFSET = 84;
    public static final int MESSAGES_OFFSET = 88;
    /** Rank that the launcher assigned to this process; -1 if unknown. {@link #SIZE_OFFSET} is the number of ranks. */
    public static final int RANK_OFFSET = 96;
    public static final int SIZE_OFFSET = 100;
    /** Time of the last heartbeat that was late, because the process had no core. */
    public static final int LATE_BEAT_OFFSET = 104;
    /** 1 while the process holds the file's lock. The process keeps the lock until it ends. */
    public static final int LOCKED_OFFSET = 112;
    static final Text HOST = new Text(128, 64);
    /** Description of the process: "takeover, network table v11, Java 25". */
    static final Text PROGRAM = new Text(192, 256);
    /** Open ports of the process: lines of "10.0.0.1 port 41234 (connections)", from the oldest to the newest. */
    static final Text PORTS = new Text(448, 576);
    /** Settings of the process, as lines of NAME=VALUE. */
    static final Text SETTINGS = new Text(1024, 3072);

    // Offset of the table of agents, and offsets in an agent's entry.

    public static final int AGENT_TABLE_OFFSET = 4096;
    public static final int AGENT_BYTES = 128;
    public static final int MAX_AGENTS = 64;

    static final Text AGENT_NAME = new Text(0, 48);
    /** Linux's number of the agent's thread; 0 if the thread has not run. */
    public static final int AGENT_THREAD_OFFSET = 48;
    public static final int AGENT_STATE_OFFSET = 52;
    public static final int AGENT_PASSES_OFFSET = 56;
    public static final int AGENT_BUSY_OFFSET = 64;
    /** Time when the passes were counted. */
    public static final int AGENT_CLOCK_OFFSET = 72;
    public static final int AGENT_CPU_OFFSET = 80;

    // Offset of the table of messages, and offsets in a message.

    public static final int MESSAGE_TABLE_OFFSET = 12 << 10;
    public static final int MESSAGE_BYTES = 256;
    public static final int MESSAGES = 16;

    public static final int MESSAGE_TIME_OFFSET = 0;
    static final Text MESSAGE_TEXT = new Text(8, MESSAGE_BYTES - 8);

    // Offsets in a block.

    public static final int TYPE_OFFSET = 0;
    public static final int STATE_OFFSET = 4;
    public static final int GENERATION_OFFSET = 8;

    public static final int CONNECTION = 1;
    public static final int COMMUNICATOR = 2;
    public static final int GIN = 3;
    public static final int SILENCE = 4;
    public static final int JOIN = 5;

    /** States of blocks and agents. */
    public static final int UNUSED = 0;
    public static final int OPEN = 1;
    public static final int CLOSED = 2;
    public static final int FAILED = 3;

    /**
     * Hash of the communicator, or its number in the engine. All types of blocks have this field and the next three
     * fields.
     */
    public static final int COMMUNICATOR_OFFSET = 16;
    public static final int RANK_IN_GROUP_OFFSET = 24;
    public static final int OPENED_OFFSET = 64;
    public static final int CLOSED_OFFSET = 72;

    public static long block(int index) {
        return HEADER_BYTES + (long) index * BLOCK_BYTES;
    }

    private TraceLayout() {}

    /**
     * A connection's block.
     *
     * <pre>
     *   16             24     28     32        36          40     44      48        64       72       80      84
     *   +--------------+------+------+---------+-----------+------+-------+---------+--------+--------+-------+
     *   | communicator | rank | peer | channel | direction | kind | agent | key (2) | opened | closed | order |
     *   +--------------+------+------+---------+-----------+------+-------+---------+--------+--------+-------+
     *
     *   128      136     144     152    160           168        176       184        208      216
     *   +--------+-------+-------+------+-------------+----------+---------+----------+--------+-----
     *   | frames | bytes | taken | done | last change | blocked  | consumed| wait (3) | unused | first step
     *   +--------+-------+-------+------+-------------+----------+---------+----------+--------+-----
     *
     *   256       288               384               512
     *   +---------+-----------------+-----------------+-------- - -
     *   | network | peer, in words  | name            | the last 128 frames
     *   +---------+-----------------+-----------------+-------- - -
     *
     *   a frame:
     *   0         8          16                               24
     *   +---------+----------+--------------------------------+---------+
     *   | taken   | end step | size (40), protocol (8)        | done    |
     *   +---------+----------+--------------------------------+---------+
     * </pre>
     *
     * <p>
     * A sent frame is <em>taken</em> when it is passed to the network, and <em>done</em> when the network has read it.
     * A received frame is <em>taken</em> when its slot is passed to the network, and <em>done</em> when the device was
     * notified of its arrival. {@code taken} holds the first step that is not taken, and {@code done} holds the first
     * step that is not done. Frame n is entry {@code n % 128}. {@code frames} is stored last, with release, and lags
     * behind the ring by up to {@value #FRAMES_AHEAD} frames.
     */
    static final class ConnectionFields {

        /** Number of the peer in the communicator; -1 if unknown. */
        public static final int PEER_OFFSET = 28;
        /** Number of the channel; -1 if unknown. */
        public static final int CHANNEL_OFFSET = 32;
        public static final int DIRECTION_OFFSET = 36;
        /**
         * Use of the connection: 0 for collectives, 1 for sends and receives, 2 for a collective network; -1 if
         * unknown.
         */
        public static final int KIND_OFFSET = 40;
        /**
         * Number of the agent that serves the connection; -1 before the first agent; {@link #NO_AGENT} if the
         * connection needs no agent.
         */
        public static final int AGENT_OFFSET = 44;
        /**
         * Value of the agent's number for a connection that needs no proxy between its two devices. No agent stores the
         * connection's counters, so the trace's thread reads them ten times a second.
         */
        public static final int NO_AGENT = -2;
        /** First half of the key that both ends share; both halves are 0 without a key. */
        public static final int KEY_HIGH_OFFSET = 48;
        public static final int KEY_LOW_OFFSET = 56;
        /** Zero-based index of the connection among the connections of its communicator and direction. */
        public static final int ORDER_OFFSET = 80;

        public static final int FRAMES_OFFSET = 128;
        public static final int BYTES_OFFSET = 136;
        public static final int TAKEN_OFFSET = 144;
        public static final int DONE_OFFSET = 152;
        public static final int LAST_CHANGE_OFFSET = 160;
        /**
         * A step that was present but could not be taken. Either the network had no room for the step, or the
         * receiver's slot was occupied, or the receiver had not started the operation. Meaningful only if the step's
         * number is at least {@code taken}.
         */
        public static final int BLOCKED_OFFSET = 168;
        /** On the receiving side, the first step that the device has not consumed. */
        public static final int CONSUMED_OFFSET = 176;
        /** Times that the proxy has waited for the kernel, for the wire and for the peer, in nanoseconds. */
        public static final int WAIT_OFFSET = 184;
        public static final int FIRST_STEP_OFFSET = 216;

        static final Text NETWORK = new Text(256, 32);
        static final Text PEER_TEXT = new Text(288, 96);
        static final Text NAME = new Text(384, 128);

        public static final int FRAME_BYTES = 32;
        /** Number of frames that are remembered; a power of two. */
        public static final int FRAMES = TraceLayout.RING_BYTES / FRAME_BYTES;

        /**
         * Maximum number of frames that are in the ring but not counted yet. These frames may already have overwritten
         * an equal number of the oldest frames.
         */
        public static final int FRAMES_AHEAD = 32;

        public static final int FRAME_TAKEN_OFFSET = 0;
        public static final int FRAME_END_OFFSET = 8;
        public static final int FRAME_WHAT_OFFSET = 16;
        public static final int FRAME_DONE_OFFSET = 24;

        /** Position of the protocol's lowest bit in a frame's word. The bits below contain the frame's size. */
        public static final int PROTOCOL_SHIFT = 40;

        private ConnectionFields() {}
    }

    /**
     * A communicator's block, and the ring of its last operations.
     *
     * <pre>
     *   16     24     28     32        64       72         128        136       144        152     160
     *   +------+------+------+-------+-+--------+--------+-+----------+---------+----------+-------+-------+
     *   | hash | rank | size | nodes | | opened | closed | | enqueued | kernels | function | begun | ended |
     *   +------+------+------+-------+-+--------+--------+-+----------+---------+----------+-------+-------+
     *   168              176            184              192         232 256    384                512
     *   +----------------+--------------+----------------+-----------+---+------+------------------+-------------- - -
     *   | disagrees with | disagrees at | number of the  | functions |   | name | oldest operation | 32 operations
     *   |                |              | oldest, plus 1 |           |   |      | that is pending  |
     *   +----------------+--------------+----------------+-----------+---+------+------------------+-------------- - -
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
     * Operation n is entry {@code n % 32}. {@code enqueued} counts the operations, and is stored last, with release. A
     * new operation may overwrite the entry of an operation whose kernel has not ended. The process then keeps the
     * unfinished operation in its own memory. When this operation becomes the oldest unfinished operation, the process
     * copies it to the field for the oldest operation. All ranks may be waiting in the oldest unfinished operation. A
     * time is 0 until its event occurs. The shim writes NCCL's own operations ({@code src/main/c/operations.h}).
     */
    public static final class CommunicatorFields {

        public static final int SIZE_OFFSET = 28;
        public static final int NODES_OFFSET = 32;
        public static final int ENQUEUED_OFFSET = 128;
        /** 1 if the start and the end of each operation's kernel are recorded, otherwise 0. */
        public static final int KERNELS_OFFSET = 136;
        /** Start time of the host function that the kernels' thread is running; 0 if no function runs. */
        public static final int FUNCTION_OFFSET = 144;
        /**
         * Number of operations whose kernel has begun; only meaningful if the field at {@link #KERNELS_OFFSET} is 1.
         * {@link #ENDED_COUNT_OFFSET} counts the operations whose kernel has ended. Kernels run in the order of their
         * operations.
         */
        public static final int BEGUN_OFFSET = 152;
        public static final int ENDED_COUNT_OFFSET = 160;
        /** Rank whose operation differs from this rank's operation, plus 1; 0 if no such rank was found. */
        public static final int DISAGREES_WITH_OFFSET = 168;
        /** Number of the collective in which the ranks differ, plus 1; 0 for a send or receive. */
        public static final int DISAGREES_AT_OFFSET = 176;
        /** Number of the operation that was copied to {@link #OLDEST_OFFSET}, plus 1; 0 if none was copied. */
        public static final int OLDEST_NUMBER_OFFSET = 184;
        /** Number of enqueued collectives of each of {@link #FUNCTIONS}, in their order. */
        public static final int FUNCTIONS_OFFSET = 192;
        /** Functions that NCCL's RAS counts, in its order. */
        public static final List<String> FUNCTIONS =
                List.of("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce");
        static final Text NAME = new Text(256, 128);
        public static final int OLDEST_OFFSET = 384;

        public static final int OPERATION_BYTES = 128;
        /** Number of operations that are remembered; a power of two. */
        public static final int OPERATIONS = TraceLayout.RING_BYTES / OPERATION_BYTES;

        public static final int SEQUENCE_OFFSET = 0;
        public static final int BYTES_OFFSET = 8;
        public static final int COUNT_OFFSET = 16;
        /** NCCL's number of the element type; -1 if unknown. */
        public static final int TYPE_OFFSET = 24;
        public static final int CHANNELS_OFFSET = 28;
        /** Peer of a send or receive; -1 otherwise. */
        public static final int PEER_OFFSET = 32;
        /** Root of the operation; -1 for an operation without a root. */
        public static final int ROOT_OFFSET = 36;
        public static final int ENQUEUED_TIME_OFFSET = 40;
        public static final int STARTED_OFFSET = 48;
        public static final int ENDED_OFFSET = 56;
        static final Text OPERATION_NAME = new Text(64, 32);
        public static final int CHANNELS_STARTED_OFFSET = 96;
        public static final int CHANNELS_ENDED_OFFSET = 104;
        /** Algorithm and protocol of the operation; empty if unknown. */
        static final Text HOW = new Text(112, 16);

        private CommunicatorFields() {}
    }

    /**
     * A GIN context's block: the numbers of descriptors that kernels posted, by kind, and the counters of the queues.
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
    public static final class GinFields {

        public static final int PEERS_OFFSET = 28;
        public static final int CONTEXT_OFFSET = 32;
        public static final int QUEUE_SIZE_OFFSET = 36;
        /** Number of descriptors of each {@link Kind}. */
        public static final int KINDS_OFFSET = 128;
        static final Text NAME = new Text(384, 128);

        public static final int QUEUE_BYTES = 32;
        /** Maximum number of queues that are stored. Queues of further peers are not stored. */
        public static final int QUEUES = TraceLayout.RING_BYTES / QUEUE_BYTES;

        public static final int QUEUE_TAKEN_OFFSET = 0;
        public static final int QUEUE_COMPLETED_OFFSET = 8;
        public static final int QUEUE_LAST_CHANGE_OFFSET = 16;

        public enum Kind implements Labelled {
            /** A put of bytes of a window. */
            PUT,
            /** A put of a value that the descriptor contains. */
            VALUE,
            /** A signal alone, without bytes. */
            SIGNAL,
            /** A get of bytes of a peer's window. */
            GET,
            /** A flush of earlier descriptors. */
            FLUSH,
            /** Puts with a signal. They are also counted as {@link #PUT} or {@link #VALUE}. */
            SIGNALLED,
            /**
             * Signals that this rank added directly in the peer's memory, without a frame. Signals of all kinds of
             * descriptors are counted.
             */
            REACHED;
        }

        private GinFields() {}
    }

    /**
     * The block of a silent link: two addresses of different hosts between which no data arrives any longer. The block
     * is open while the link is silent, and closed once data has arrived again. The state is failed if the connections
     * over the link were lost.
     *
     * <pre>
     *   64       72         128     136       192         256          352
     *   +--------+--------+ +-------+---------+-----------+------------+------------+
     *   | opened | closed | | since | streams | local end | remote end | first peer |
     *   +--------+--------+ +-------+---------+-----------+------------+------------+
     * </pre>
     */
    static final class SilenceFields {

        /** Time when data last arrived on the link's first silent stream. */
        static final int SINCE_OFFSET = 128;
        /** Number of streams of connections over the link. */
        static final int STREAMS_OFFSET = 136;
        /**
         * Value that replaces the number of streams if the block describes one connection without a stream. The field
         * of the first peer then holds a text about the loss of the last stream.
         */
        static final int CUT = -1;

        static final Text LOCAL = new Text(192, 64);
        static final Text REMOTE = new Text(256, 96);
        static final Text PEER = new Text(352, 160);

        private SilenceFields() {}
    }

    /**
     * The block of a rank that joins a group. The block is open until the group is complete, or until the join has
     * failed. The ring has one bit for each rank that has not joined, in words of 64 bits. A connection that is being
     * made also has such a block. The size is then 0, and the activity is the connection's description.
     *
     * <pre>
     *   28     64       72         128     136      192          288        512
     *   +------+--------+--------+ +-------+--------+------------+----------+--------------- - -
     *   | size | opened | closed | | since | polled | rendezvous | activity | missing ranks
     *   +------+--------+--------+ +-------+--------+------------+----------+--------------- - -
     * </pre>
     */
    static final class JoinFields {

        static final int SIZE_OFFSET = 28;
        /** Time when a rank last joined; at first, the time when this join or connection began. */
        static final int SINCE_OFFSET = 128;
        /**
         * Time when the activity was last stored. For a connection, this is the time of the last poll, or up to 100 ms
         * earlier.
         */
        static final int POLLED_OFFSET = 136;
        static final Text WHERE = new Text(192, 96);
        /** Present activity of a rank that rank 0 has not admitted, as the predicate of a sentence. */
        static final Text ACTIVITY = new Text(288, 224);

        private JoinFields() {}
    }
}
