package org.millrace.trace;

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
 * <em>done</em> when the network has read it, or the device was told that it is there. {@code taken} and {@code done}
 * are the first steps that are not. Frame n is entry {@code n % 128}; {@code frames} is stored last, with release, and
 * up to {@value #FRAMES_AHEAD} frames behind the ring.
 */
final class ConnectionFields {

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
     * A step that is there and could not be taken: the network had no room for it, or the device had not emptied its
     * slot. It means something while it is not below {@code taken}.
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
