package org.millrace.net.connection;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import org.millrace.net.ConnectionKey;

/**
 * Format of the first 48 bytes of a network's hellos, little-endian. Each network defines the 4 bytes at offset 12, and
 * all bytes from offset 48 on. The layout of the first 12 bytes is the same in all versions.
 *
 * <pre>
 *   0          8         12        16         32        40       48
 *   +----------+---------+---------+----------+---------+--------+---  -  ---+
 *   | magic    | version | the     | secret   | key     | key    | the       |
 *   | 8 chars  | u32     | network | 16 bytes | high    | low    | network   |
 *   +----------+---------+---------+----------+---------+--------+---  -  ---+
 * </pre>
 *
 * @param magic   8 characters at the beginning of both sides' messages
 * @param version version of all data on the network's connections
 * @param bytes   length of a hello
 */
public record HelloFormat(String magic, int version, int bytes) {

    /** Length of a listener's secret in bytes. */
    public static final int SECRET_BYTES = 16;

    /** Length of the part that all versions share: magic number and version. */
    static final int COMMON_BYTES = 12;

    private static final int VERSION_OFFSET = 8;
    private static final int SECRET_OFFSET = 16;
    private static final int KEY_HIGH_OFFSET = 32;
    private static final int KEY_LOW_OFFSET = 40;

    /** Returns a new secret for a listener. The listener's address contains the secret. */
    public static byte[] newSecret() {
        byte[] secret = new byte[SECRET_BYTES];
        new SecureRandom().nextBytes(secret);
        return secret;
    }

    /** Returns a hello with the values of the fields that every network's hello has. All other bytes are 0. */
    public ByteBuffer encode(byte[] secret, ConnectionKey key) {
        ByteBuffer hello = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
        encodeCommon(hello);
        return hello.put(SECRET_OFFSET, secret).putLong(KEY_HIGH_OFFSET, key.high()).putLong(KEY_LOW_OFFSET, key.low());
    }

    void encodeCommon(ByteBuffer to) {
        for (int i = 0; i < magic.length(); i++) {
            to.put(i, (byte) magic.charAt(i));
        }
        to.putInt(VERSION_OFFSET, version);
    }

    /** Returns whether the received bytes before the position can be the beginning of this network's hello. */
    public boolean isBegunBy(ByteBuffer came) {
        for (int i = 0; i < Math.min(came.position(), magic.length()); i++) {
            if (came.get(i) != magic.charAt(i)) {
                return false;
            }
        }
        return true;
    }

    public static int versionIn(ByteBuffer bytes) {
        return bytes.getInt(VERSION_OFFSET);
    }

    /** Returns the secret of the listener that a hello addresses. */
    public static byte[] secretIn(ByteBuffer hello) {
        byte[] secret = new byte[SECRET_BYTES];
        hello.get(SECRET_OFFSET, secret);
        return secret;
    }

    static ConnectionKey keyIn(ByteBuffer hello) {
        return new ConnectionKey(hello.getLong(KEY_HIGH_OFFSET), hello.getLong(KEY_LOW_OFFSET));
    }

    /** Returns unexpected bytes as characters for a message. Unprintable characters become dots. */
    public static String excerpt(ByteBuffer bytes) {
        return characters(bytes).replaceAll("[^ -~]", ".");
    }

    static String characters(ByteBuffer bytes) {
        return StandardCharsets.ISO_8859_1.decode(bytes.duplicate()).toString();
    }
}
