package org.millrace.trace;

/**
 * The file that a process writes: a header, and blocks of one size behind it. All numbers are little-endian, all times
 * are of {@link System#nanoTime}, which on Linux all processes of a host share. Text is UTF-8, padded with zeros.
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
 *   | type  | state  | generation | what the type says    | a ring of what happened last |
 *   +-------+--------+------------+-----------------------+------------------------------+
 * </pre>
 *
 * <p>
 * The file grows by {@value #GROWTH} blocks, whose bytes are all there before the header counts them. A block that was
 * closed may be taken again, with its generation counted up. {@code state} is stored last, with release; what describes
 * a block is written before and does not change while the block is open, unless it is said below.
 *
 * Each field has one writer: {@link ProcessTrace}, under its lock, of the header, settings, messages, types, states and
 * what describes a block; its thread of the heartbeat, whether the file is locked, an agent's CPU time and how much of
 * a link is silent; the agent's thread of a connection's counters and ring, and of its own passes;
 * {@link CommunicatorTrace}, under its lock, of operations.
 */
public final class TraceLayout {

    /** "MLRTRACE". */
    public static final long MAGIC = 0x45434152_54524c4dL;
    /** Of this format: a reader knows one. */
    public static final int VERSION = 1;

    public static final int HEADER_BYTES = 16 << 10;
    /** Bytes of a block before its ring. */
    public static final int RECORD_BYTES = 512;
    public static final int RING_BYTES = 4096;
    public static final int BLOCK_BYTES = RECORD_BYTES + RING_BYTES;
    /** Blocks by which a file grows: together a multiple of a page. */
    public static final int GROWTH = 16;
    /** The most blocks of a file: 18 MiB. */
    public static final int MOST_BLOCKS = 4096;

    /** A process that has something open beats ten times a second; one that comes later than this had no core. */
    public static final long LATE_NANOS = 300_000_000;

    // The header

    public static final int MAGIC_OFFSET = 0;
    public static final int VERSION_OFFSET = 8;
    public static final int HEADER_BYTES_OFFSET = 12;
    public static final int BLOCK_BYTES_OFFSET = 16;
    /** Whether connections keep their last steps. */
    public static final int STEPS_OFFSET = 20;
    public static final int PID_OFFSET = 24;
    /** When the process started, in clock ticks since the host booted. */
    public static final int START_TICKS_OFFSET = 32;
    /** In which its number counts. */
    public static final int NAMESPACE_OFFSET = 40;
    /** Milliseconds since 1970 when the file was made, and the same moment as a time of this format. */
    public static final int EPOCH_MILLIS_OFFSET = 48;
    public static final int EPOCH_NANOS_OFFSET = 56;
    /** When the process was last seen to run. */
    public static final int HEARTBEAT_OFFSET = 64;
    public static final int BLOCKS_OFFSET = 72;
    public static final int AGENTS_OFFSET = 76;
    /** Blocks that are open: a process that ends with 0 of them leaves no file. Read by leftovers.c, too. */
    public static final int OPEN_OFFSET = 80;
    /** 1 once the process has said that it failed. Read by leftovers.c, too. */
    public static final int FAILED_OFFSET = 84;
    public static final int MESSAGES_OFFSET = 88;
    /** What the launcher says: this process's rank, and how many there are; -1 if it says nothing. */
    public static final int RANK_OFFSET = 96;
    public static final int SIZE_OFFSET = 100;
    /** When the process was last seen to run after it had not been for longer than it should: it had no core. */
    public static final int LATE_BEAT_OFFSET = 104;
    /** 1 once the process holds the file's lock, until it ends. */
    public static final int LOCKED_OFFSET = 112;
    public static final int HOST_OFFSET = 128;
    public static final int HOST_BYTES = 64;
    /** What the process is: "takeover, network table v11, Java 25". */
    public static final int PROGRAM_OFFSET = 192;
    public static final int PROGRAM_BYTES = 256;
    /** Lines of NAME=VALUE. */
    public static final int SETTINGS_OFFSET = 1024;
    public static final int SETTINGS_BYTES = 3072;

    // Agents

    public static final int AGENT_TABLE_OFFSET = 4096;
    public static final int AGENT_BYTES = 128;
    public static final int MOST_AGENTS = 64;

    public static final int AGENT_NAME_OFFSET = 0;
    public static final int AGENT_NAME_BYTES = 48;
    /** The thread's number; 0 while it has not run. */
    public static final int AGENT_THREAD_OFFSET = 48;
    public static final int AGENT_STATE_OFFSET = 52;
    public static final int AGENT_PASSES_OFFSET = 56;
    /** Passes in which something was done. */
    public static final int AGENT_BUSY_OFFSET = 64;
    /** When the passes were counted. */
    public static final int AGENT_CLOCK_OFFSET = 72;
    public static final int AGENT_CPU_OFFSET = 80;

    // Messages

    public static final int MESSAGE_TABLE_OFFSET = 12 << 10;
    public static final int MESSAGE_BYTES = 256;
    public static final int MESSAGES = 16;

    public static final int MESSAGE_TIME_OFFSET = 0;
    public static final int MESSAGE_TEXT_OFFSET = 8;
    public static final int MESSAGE_TEXT_BYTES = MESSAGE_BYTES - MESSAGE_TEXT_OFFSET;

    // Blocks

    public static final int TYPE_OFFSET = 0;
    public static final int STATE_OFFSET = 4;
    public static final int GENERATION_OFFSET = 8;

    public static final int CONNECTION = 1;
    public static final int COMMUNICATOR = 2;
    public static final int GIN = 3;
    public static final int SILENCE = 4;

    /** States of blocks and agents. */
    public static final int UNUSED = 0;
    public static final int OPEN = 1;
    public static final int CLOSED = 2;
    public static final int FAILED = 3;

    /** Common to all types. */
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
     * A frame is <em>taken</em> when it goes to the network, or its slot to the network for what comes in; it is
     * <em>done</em> when the network has read it, or the device was told that it is there. {@code taken} and
     * {@code done} are the first steps that are not. Frame n is entry {@code n % 128}; {@code frames} is stored last,
     * with release, and up to {@value #FRAMES_AHEAD} frames behind the ring.
     */
    static final class ConnectionFields {

        /** Its number in the group; -1 if not known. */
        public static final int PEER_OFFSET = 28;
        /** -1 if not known. */
        public static final int CHANNEL_OFFSET = 32;
        public static final int DIRECTION_OFFSET = 36;
        /** Of collectives (0), of sends and receives (1), with a network that reduces (2); -1 if not known. */
        public static final int KIND_OFFSET = 40;
        /** The number of the agent that serves it; -1 while none does; {@link #NO_AGENT}. */
        public static final int AGENT_OFFSET = 44;
        /** The two devices reach each other's memory: their counters are looked at ten times a second. */
        public static final int NO_AGENT = -2;
        /** What both ends have in common, if it is not 0. */
        public static final int KEY_HIGH_OFFSET = 48;
        public static final int KEY_LOW_OFFSET = 56;
        /** Zero-based index among the connections of its communicator and direction. */
        public static final int ORDER_OFFSET = 80;

        public static final int FRAMES_OFFSET = 128;
        public static final int BYTES_OFFSET = 136;
        public static final int TAKEN_OFFSET = 144;
        public static final int DONE_OFFSET = 152;
        public static final int LAST_CHANGE_OFFSET = 160;
        /**
         * A step that is there and could not be taken: the network had no room for it, or the device had not emptied
         * its slot. It means something while it is not below {@code taken}.
         */
        public static final int BLOCKED_OFFSET = 168;
        /** On the receiving side, the first step that the device has not used. */
        public static final int CONSUMED_OFFSET = 176;
        /** Nanoseconds that it waited: for the kernel, for the wire, for the peer. */
        public static final int WAIT_OFFSET = 184;
        public static final int FIRST_STEP_OFFSET = 216;

        public static final int NETWORK_OFFSET = 256;
        public static final int NETWORK_BYTES = 32;
        public static final int PEER_TEXT_OFFSET = 288;
        public static final int PEER_TEXT_BYTES = 96;
        public static final int NAME_OFFSET = 384;
        public static final int NAME_BYTES = 128;

        public static final int FRAME_BYTES = 32;
        /** Frames that are remembered; a power of two. */
        public static final int FRAMES = TraceLayout.RING_BYTES / FRAME_BYTES;

        /** The most frames that are in the ring, and not counted yet: as many of the oldest may be overwritten. */
        public static final int FRAMES_AHEAD = 32;

        public static final int FRAME_TAKEN_OFFSET = 0;
        public static final int FRAME_END_OFFSET = 8;
        public static final int FRAME_WHAT_OFFSET = 16;
        public static final int FRAME_DONE_OFFSET = 24;

        /** In what a frame is: its size below, its protocol above. */
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
     * Operation n is entry {@code n % 32}; {@code enqueued} counts them, and is stored last, with release. One whose
     * kernel has not ended when its entry is needed for another moves to the place of the oldest once it is that: it is
     * what everybody may be waiting in. Times are 0 until something happens. The shim writes operations of NCCL's
     * itself ({@code src/main/c/operations.h}).
     */
    public static final class CommunicatorFields {

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
    public static final class GinFields {

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

    /**
     * The block of a link that has fallen silent: open while it is, closed once something has come over it again,
     * failed when its silent connections were lost.
     *
     * <pre>
     *   64       72         128     136       192         256          352
     *   +--------+--------+ +-------+---------+-----------+------------+------------+
     *   | opened | closed | | since | streams | local end | remote end | first peer |
     *   +--------+--------+ +-------+---------+-----------+------------+------------+
     * </pre>
     */
    static final class SilenceFields {

        /** When something was last heard on the stream that fell silent first. */
        static final int SINCE_OFFSET = 128;
        /** How many streams of connections the link has. */
        static final int STREAMS_OFFSET = 136;
        /** In their place: it is one connection, without a stream; in place of the first peer is what it waits for. */
        static final int CUT = -1;

        static final int LOCAL_OFFSET = 192;
        static final int LOCAL_BYTES = 64;
        static final int REMOTE_OFFSET = 256;
        static final int REMOTE_BYTES = 96;
        static final int PEER_OFFSET = 352;
        static final int PEER_BYTES = 160;

        private SilenceFields() {}
    }
}
