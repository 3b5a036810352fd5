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
final class SilenceFields {

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
