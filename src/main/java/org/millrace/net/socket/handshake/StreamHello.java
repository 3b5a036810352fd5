package org.millrace.net.socket.handshake;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.millrace.net.ConnectionKey;
import org.millrace.net.socket.stream.SocketOptions;
import org.millrace.net.socket.stripes.Stripes;

/**
 * What the connecting side says first on each stream, little-endian. The first 12 bytes are the same in all versions.
 *
 * <pre>
 *   0          8         12        16         32        40       48         56       60        64      66      68       72
 *   +----------+---------+---------+----------+---------+--------+----------+--------+---------+-------+-------+--------+
 *   | magic    | version | stripe  | secret   | key     | key    | attempt  | stream | streams | rail  | rails | window |
 *   | 8 chars  | u32     | thresh. | 16 bytes | high    | low    | i64      | u32    | u32     | u16   | u16   | u32    |
 *   +----------+---------+---------+----------+---------+--------+----------+--------+---------+-------+-------+--------+
 * </pre>
 *
 * <p>
 * The attempt is a random number that the streams of one connection share: it tells a second client with the same key
 * from another stream of the first.
 *
 * <p>
 * A hello that says 0 streams is no part of a connection: it asks for the listener's addresses.
 *
 * @param version   of the protocol, from here to the frames
 * @param threshold the shortest payload that is divided
 * @param secret    the listener's
 * @param key       which connection
 * @param attempt   which client
 * @param stream    0 to streams - 1
 * @param streams   how many the connection has
 * @param rail      which rail the stream is of, 0 to rails - 1
 * @param rails     how many the connection has
 * @param window    frames that the sender has under way at most
 */
public record StreamHello(int version, int threshold, byte[] secret, ConnectionKey key, long attempt, int stream,
        int streams, int rail, int rails, int window) {

    /** Version of all that goes over the wire. */
    public static final int VERSION = 2;

    /** Length of a hello. */
    static final int BYTES = 72;

    /** How each stream begins, in both directions. */
    public static final byte[] MAGIC = {'M', 'I', 'L', 'L', 'R', 'A', 'C', 'E'};

    /** Length of what is common to all versions: magic and version. */
    static final int COMMON_BYTES = 12;

    private static final int VERSION_OFFSET = 8;
    private static final int THRESHOLD_OFFSET = 12;
    private static final int SECRET_OFFSET = 16;
    private static final int KEY_HIGH_OFFSET = 32;
    private static final int KEY_LOW_OFFSET = 40;
    private static final int ATTEMPT_OFFSET = 48;
    private static final int STREAM_OFFSET = 56;
    private static final int STREAMS_OFFSET = 60;
    private static final int RAIL_OFFSET = 64;
    private static final int RAILS_OFFSET = 66;
    private static final int WINDOW_OFFSET = 68;

    ByteBuffer encode() {
        ByteBuffer bytes = ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        bytes.put(0, MAGIC);
        bytes.putInt(VERSION_OFFSET, version);
        bytes.putInt(THRESHOLD_OFFSET, threshold);
        bytes.put(SECRET_OFFSET, secret);
        bytes.putLong(KEY_HIGH_OFFSET, key.high());
        bytes.putLong(KEY_LOW_OFFSET, key.low());
        bytes.putLong(ATTEMPT_OFFSET, attempt);
        bytes.putInt(STREAM_OFFSET, stream);
        bytes.putInt(STREAMS_OFFSET, streams);
        bytes.putShort(RAIL_OFFSET, (short) rail);
        bytes.putShort(RAILS_OFFSET, (short) rails);
        bytes.putInt(WINDOW_OFFSET, window);
        return bytes;
    }

    /** Whether as many bytes as came so far, from 0 to the position, are how a stream begins. */
    static boolean beginsWithMagic(ByteBuffer bytes) {
        for (int i = 0; i < Math.min(bytes.position(), MAGIC.length); i++) {
            if (bytes.get(i) != MAGIC[i]) {
                return false;
            }
        }
        return true;
    }

    static int version(ByteBuffer bytes) {
        return bytes.getInt(VERSION_OFFSET);
    }

    static StreamHello decode(ByteBuffer bytes) {
        byte[] secret = new byte[AddressFormat.SECRET_BYTES];
        bytes.get(SECRET_OFFSET, secret);
        return new StreamHello(version(bytes), bytes.getInt(THRESHOLD_OFFSET), secret,
                new ConnectionKey(bytes.getLong(KEY_HIGH_OFFSET), bytes.getLong(KEY_LOW_OFFSET)),
                bytes.getLong(ATTEMPT_OFFSET), bytes.getInt(STREAM_OFFSET), bytes.getInt(STREAMS_OFFSET),
                bytes.getShort(RAIL_OFFSET), bytes.getShort(RAILS_OFFSET), bytes.getInt(WINDOW_OFFSET));
    }

    /** Whether this asks for the listener's addresses. */
    boolean isQuery() {
        return streams == 0;
    }

    /** Whether the numbers make sense. */
    boolean isPlausible() {
        return isQuery() || streams >= 1 && streams <= Stripes.MAX_STREAMS && stream >= 0 && stream < streams
                && threshold >= 1 && rails >= 1 && rails <= streams && rail >= 0 && rail < rails && window >= 1
                && window <= SocketOptions.MAX_FRAMES_IN_FLIGHT;
    }
}
