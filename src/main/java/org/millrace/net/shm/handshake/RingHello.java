package org.millrace.net.shm.handshake;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import org.millrace.net.ConnectionKey;

/**
 * What the connecting side says when its ring is made, little-endian. The first 12 bytes are the same in all versions.
 *
 * <pre>
 *   0          8         12       16         32        40       48         56        192
 *   +----------+---------+--------+----------+---------+--------+----------+---------+
 *   | magic    | version | 0      | secret   | key     | key    | capacity | ring's  |
 *   | 8 chars  | u32     |        | 16 bytes | high    | low    | i64      | name, 0 |
 *   +----------+---------+--------+----------+---------+--------+----------+---------+
 * </pre>
 *
 * @param version  of all that the two processes share
 * @param secret   the listener's
 * @param key      which connection
 * @param capacity of the ring
 * @param ring     name of the ring's file in the shared directory
 */
record RingHello(int version, byte[] secret, ConnectionKey key, long capacity, String ring) {

    /** Length of a hello. */
    static final int BYTES = 192;
    /** How both sides begin. */
    static final byte[] MAGIC = {'M', 'I', 'L', 'L', 'S', 'H', 'M', 'R'};

    private static final int VERSION_OFFSET = 8;
    private static final int SECRET_OFFSET = 16;
    private static final int KEY_HIGH_OFFSET = 32;
    private static final int KEY_LOW_OFFSET = 40;
    private static final int CAPACITY_OFFSET = 48;
    private static final int RING_OFFSET = 56;

    ByteBuffer encode() {
        ByteBuffer bytes = ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        bytes.put(0, MAGIC);
        bytes.putInt(VERSION_OFFSET, version);
        bytes.put(SECRET_OFFSET, secret);
        bytes.putLong(KEY_HIGH_OFFSET, key.high());
        bytes.putLong(KEY_LOW_OFFSET, key.low());
        bytes.putLong(CAPACITY_OFFSET, capacity);
        bytes.put(RING_OFFSET, ring.getBytes(StandardCharsets.US_ASCII));
        return bytes;
    }

    static boolean hasMagic(ByteBuffer bytes) {
        return bytes.slice(0, MAGIC.length).mismatch(ByteBuffer.wrap(MAGIC)) < 0;
    }

    static RingHello decode(ByteBuffer bytes) {
        byte[] secret = new byte[ShmAddress.SECRET_BYTES];
        bytes.get(SECRET_OFFSET, secret);
        byte[] ring = new byte[BYTES - RING_OFFSET];
        bytes.get(RING_OFFSET, ring);
        return new RingHello(bytes.getInt(VERSION_OFFSET), secret,
                new ConnectionKey(bytes.getLong(KEY_HIGH_OFFSET), bytes.getLong(KEY_LOW_OFFSET)),
                bytes.getLong(CAPACITY_OFFSET), new String(ring, StandardCharsets.US_ASCII).replace("\0", ""));
    }
}
