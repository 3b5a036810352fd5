package org.millrace.trace;

/**
 * The block of a link that has fallen silent: open while it is, closed once something has come over it again, failed
 * when its silent connections were lost.
 *
 * <pre>
 *   64       72         128     136       192         256          352
 *   +--------+--------+ +-------+---------+-----------+------------+------------+
 *   | opened | closed | | since | streams | local end | remote end | first peer |
 *   +--------+--------+ +-------+---------+-----------+------------+------------+
 * </pre>
 */
public final class SilenceFields {

    /** When something was last heard on the stream that fell silent first. */
    public static final int SINCE_OFFSET = 128;
    /** How many streams of connections the link has. */
    public static final int STREAMS_OFFSET = 136;

    public static final int LOCAL_OFFSET = 192;
    public static final int LOCAL_BYTES = 64;
    public static final int REMOTE_OFFSET = 256;
    public static final int REMOTE_BYTES = 96;
    public static final int PEER_OFFSET = 352;
    public static final int PEER_BYTES = 96;

    private SilenceFields() {}
}
