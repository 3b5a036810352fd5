package org.millrace.net.shm;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.millrace.net.ConnectionKey;
import org.millrace.net.connection.HelloFormat;
import org.millrace.net.connection.PeerText;

/**
 * Hello of the connecting side, sent after this side has created its ring. All numbers are little-endian. The hello
 * consists of the fields that all networks have, the ring's capacity and the ring's name.
 *
 * <pre>
 *   0          8         12       16         32        40       48         56        192
 *   +----------+---------+--------+----------+---------+--------+----------+---------+
 *   | magic    | version | 0      | secret   | key     | key    | capacity | ring's  |
 *   | 8 chars  | u32     |        | 16 bytes | high    | low    | i64      | name, 0 |
 *   +----------+---------+--------+----------+---------+--------+----------+---------+
 * </pre>
 */
record RingHello(long capacity, String ring) {

    static final HelloFormat FORMAT = new HelloFormat("MILLSHMR", RingLayout.VERSION, 192);

    private static final int CAPACITY_OFFSET = 48;
    private static final int RING_OFFSET = 56;

    ByteBuffer encode(byte[] secret, ConnectionKey key) {
        return FORMAT.encode(secret, key)
                .putLong(CAPACITY_OFFSET, capacity)
                .put(RING_OFFSET, ring.getBytes(StandardCharsets.US_ASCII));
    }

    static RingHello decode(ByteBuffer bytes) {
        byte[] ring = new byte[FORMAT.bytes() - RING_OFFSET];
        bytes.get(RING_OFFSET, ring);
        return new RingHello(bytes.getLong(CAPACITY_OFFSET),
                PeerText.line(new String(ring, StandardCharsets.US_ASCII).replace("\0", "")));
    }
}
