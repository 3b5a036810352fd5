package org.millrace.net.socket;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionKey;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.HelloFormat;

/**
 * What the connecting side says first on each stream, little-endian: what all networks say, with the stripe threshold
 * at 12, and behind it the stream's place in its connection.
 *
 * <pre>
 *   0         8         12        16       32     40     48        56       60        64     66      68       72    80
 *   +---------+---------+---------+--------+------+------+---------+--------+---------+------+-------+--------+-----+
 *   | magic   | version | stripe  | secret | key  | key  | attempt | stream | streams | rail | rails | window | pid |
 *   | 8 chars | u32     | thresh. | 16 B   | high | low  | i64     | u32    | u32     | u16  | u16   | u32    | i64 |
 *   +---------+---------+---------+--------+------+------+---------+--------+---------+------+-------+--------+-----+
 *   80       96     100    104
 *   +--------+------+------+
 *   | own    | port |      |
 *   | secret | u32  | 0    |
 *   +--------+------+------+
 * </pre>
 *
 * <p>
 * The attempt is a random number that the streams of one connection share: it tells a second client with the same key
 * from another stream of the first.
 *
 * <p>
 * The pid is the connecting process's number where it runs, for messages alone.
 *
 * <p>
 * The own secret and the port are those of the connecting process's {@link Reconnector}; port 0 if it makes no lost
 * stream again. The listener says the same of itself behind its reply, in {@value #RESUME_BYTES} bytes. When a client
 * has read that on all its streams, it sends an {@link HandshakeReply#ACCEPTED} of its own on the first.
 *
 * <p>
 * A hello that says 0 streams is no part of a connection: it asks for the listener's addresses.
 *
 * @param threshold the shortest payload that is divided
 * @param attempt   which client
 * @param stream    0 to streams - 1
 * @param streams   how many the connection has
 * @param rail      which rail the stream is of, 0 to rails - 1
 * @param rails     how many the connection has
 * @param window    frames that the sender has under way at most
 */
record StreamHello(int threshold, long attempt, int stream, int streams, int rail, int rails, int window) {

    /** Version of all that goes over the wire. */
    static final int VERSION = 6;

    static final HelloFormat FORMAT = new HelloFormat("MILLRACE", VERSION, 104);

    private static final int THRESHOLD_OFFSET = 12;
    private static final int ATTEMPT_OFFSET = 48;
    private static final int STREAM_OFFSET = 56;
    private static final int STREAMS_OFFSET = 60;
    private static final int RAIL_OFFSET = 64;
    private static final int RAILS_OFFSET = 66;
    private static final int WINDOW_OFFSET = 68;
    private static final int PID_OFFSET = 72;
    private static final int RESUME_OFFSET = 80;
    /** What a process says of its reconnector: secret, port. */
    static final int RESUME_BYTES = 24;

    /** @param reconnector of this process; null if it has none */
    ByteBuffer encode(byte[] secret, ConnectionKey key, @Nullable Reconnector reconnector) {
        ByteBuffer bytes = FORMAT.encode(secret, key);
        bytes.putInt(THRESHOLD_OFFSET, threshold);
        bytes.putLong(ATTEMPT_OFFSET, attempt);
        bytes.putInt(STREAM_OFFSET, stream);
        bytes.putInt(STREAMS_OFFSET, streams);
        bytes.putShort(RAIL_OFFSET, (short) rail);
        bytes.putShort(RAILS_OFFSET, (short) rails);
        bytes.put(RESUME_OFFSET, encode(reconnector), 0, RESUME_BYTES);
        return bytes.putInt(WINDOW_OFFSET, window).putLong(PID_OFFSET, ProcessHandle.current().pid());
    }

    /** What a process says of its reconnector. */
    static ByteBuffer encode(@Nullable Reconnector reconnector) {
        ByteBuffer bytes = ByteBuffer.allocate(RESUME_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        return reconnector == null ? bytes
                : bytes.put(0, reconnector.secret()).putInt(HelloFormat.SECRET_BYTES, reconnector.port());
    }

    /** What a client has said of its reconnector. */
    static ByteBuffer resumeIn(ByteBuffer hello) {
        return hello.slice(RESUME_OFFSET, RESUME_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** The port in what was said of a reconnector; 0 if there is none. */
    static int resumePort(ByteBuffer resume) {
        return resume.getInt(HelloFormat.SECRET_BYTES) & 0xffff;
    }

    static byte[] resumeSecret(ByteBuffer resume) {
        byte[] secret = new byte[HelloFormat.SECRET_BYTES];
        resume.get(0, secret);
        return secret;
    }

    /** The number of the process that said a hello. */
    static long pidIn(ByteBuffer hello) {
        return hello.getLong(PID_OFFSET);
    }

    static StreamHello decode(ByteBuffer bytes) {
        return new StreamHello(bytes.getInt(THRESHOLD_OFFSET), bytes.getLong(ATTEMPT_OFFSET),
                bytes.getInt(STREAM_OFFSET), bytes.getInt(STREAMS_OFFSET), bytes.getShort(RAIL_OFFSET),
                bytes.getShort(RAILS_OFFSET), bytes.getInt(WINDOW_OFFSET));
    }

    /** Whether this asks for the listener's addresses. */
    boolean isQuery() {
        return streams == 0;
    }

    /** Whether the numbers make sense. */
    boolean isPlausible() {
        return isQuery() || streams >= 1 && streams <= SocketOptions.MAX_STREAMS && stream >= 0 && stream < streams
                && threshold >= 1 && rails >= 1 && rails <= streams && rail >= 0 && rail < rails && window >= 1
                && window <= SocketOptions.MAX_FRAMES_IN_FLIGHT;
    }

    /** Whether another stream may be one of the same connection, beside this one. */
    boolean agreesWith(StreamHello other) {
        return streams == other.streams && threshold == other.threshold && rails == other.rails
                && window == other.window;
    }
}
