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
final class TraceLayout {

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
}
