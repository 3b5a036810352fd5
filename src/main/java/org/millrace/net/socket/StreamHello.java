package org.millrace.net.socket;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionKey;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.HelloFormat;

/**
 * The connecting side's first message on each stream, little-endian. The message begins with the fields that every
 * network's hello has; the field at byte 12 is the stripe threshold. The remaining fields describe the connection and
 * the stream.
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
 * The attempt is a random number that all streams of one connection have in common. The listener uses this number to
 * distinguish another stream of the same client from a second client with the same key.
 *
 * <p>
 * The pid is the connecting process's ID in its own PID namespace, and is used only in texts for users.
 *
 * <p>
 * The fields {@code own secret} and {@code port} belong to the connecting process's {@link Reconnector}. Port 0 means
 * that this process does not restore lost streams. The listener sends the same two fields behind its reply, in
 * {@value #RESUME_BYTES} bytes. When the client has read them on all its streams, it sends
 * {@link HandshakeReply#ACCEPTED} on the first stream.
 *
 * <p>
 * A hello with 0 streams does not belong to a connection, but requests the listener's addresses.
 *
 * @param threshold minimum length in bytes of a payload that is divided among the streams
 * @param attempt   number that identifies the client's attempt to connect
 * @param stream    ordinal of the stream, 0 to streams - 1
 * @param streams   number of the connection's streams
 * @param rail      ordinal of the stream's rail, 0 to rails - 1
 * @param rails     number of the connection's rails
 * @param window    maximum number of the sender's frames in flight
 */
record StreamHello(int threshold, long attempt, int stream, int streams, int rail, int rails, int window) {

    /** Version of all formats on the network. */
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
    /** Length in bytes of a process's data about its reconnector: secret and port. */
    static final int RESUME_BYTES = 24;

    /** @param reconnector reconnector of this process; null if lost streams are not restored */
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

    /** Encodes this process's data about its reconnector. */
    static ByteBuffer encode(@Nullable Reconnector reconnector) {
        ByteBuffer bytes = ByteBuffer.allocate(RESUME_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        return reconnector == null ? bytes
                : bytes.put(0, reconnector.secret()).putInt(HelloFormat.SECRET_BYTES, reconnector.port());
    }

    /** Returns the client's data about its reconnector. */
    static ByteBuffer resumeIn(ByteBuffer hello) {
        return hello.slice(RESUME_OFFSET, RESUME_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Returns the port in the data about a reconnector; 0 if the process restores no lost streams. */
    static int resumePort(ByteBuffer resume) {
        return resume.getInt(HelloFormat.SECRET_BYTES) & 0xffff;
    }

    static byte[] resumeSecret(ByteBuffer resume) {
        byte[] secret = new byte[HelloFormat.SECRET_BYTES];
        resume.get(0, secret);
        return secret;
    }

    /** Returns the ID of the process that sent the hello. */
    static long pidIn(ByteBuffer hello) {
        return hello.getLong(PID_OFFSET);
    }

    static StreamHello decode(ByteBuffer bytes) {
        return new StreamHello(bytes.getInt(THRESHOLD_OFFSET), bytes.getLong(ATTEMPT_OFFSET),
                bytes.getInt(STREAM_OFFSET), bytes.getInt(STREAMS_OFFSET), bytes.getShort(RAIL_OFFSET),
                bytes.getShort(RAILS_OFFSET), bytes.getInt(WINDOW_OFFSET));
    }

    /** Returns whether the hello requests the listener's addresses. */
    boolean isQuery() {
        return streams == 0;
    }

    boolean isPlausible() {
        return isQuery() || streams >= 1 && streams <= SocketOptions.MAX_STREAMS && stream >= 0 && stream < streams
                && threshold >= 1 && rails >= 1 && rails <= streams && rail >= 0 && rail < rails && window >= 1
                && window <= SocketOptions.MAX_FRAMES_IN_FLIGHT;
    }

    /** Returns whether the stream of another hello may belong to the same connection. */
    boolean agreesWith(StreamHello other) {
        return streams == other.streams && threshold == other.threshold && rails == other.rails
                && window == other.window;
    }
}
