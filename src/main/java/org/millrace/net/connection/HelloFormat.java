package org.millrace.net.connection;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.SecureRandom;
import org.millrace.net.ConnectionKey;

/**
 * How a network's hellos begin, little-endian; the rest is the network's own. The first 12 bytes are the same in all
 * versions.
 *
 * <pre>
 *   0          8         12        16         32        40       48
 *   +----------+---------+---------+----------+---------+--------+---  -  ---+
 *   | magic    | version | the     | secret   | key     | key    | the       |
 *   | 8 chars  | u32     | network | 16 bytes | high    | low    | network   |
 *   +----------+---------+---------+----------+---------+--------+---  -  ---+
 * </pre>
 *
 * @param magic   8 characters, how both sides begin
 * @param version of all that goes over the network's connections
 */
public record HelloFormat(String magic, int version, int bytes) {

    /** Length of a listener's secret. */
    public static final int SECRET_BYTES = 16;

    /** Length of what is common to all versions: magic and version. */
    static final int COMMON_BYTES = 12;

    private static final int VERSION_OFFSET = 8;
    private static final int SECRET_OFFSET = 16;
    private static final int KEY_HIGH_OFFSET = 32;
    private static final int KEY_LOW_OFFSET = 40;

    /** A secret for a listener, which is in its address. */
    public static byte[] newSecret() {
        byte[] secret = new byte[SECRET_BYTES];
        new SecureRandom().nextBytes(secret);
        return secret;
    }

    /** A hello with all that networks have in common. */
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

    /** Whether as many bytes as came so far, from 0 to the position, are how this network begins. */
    public boolean isBegunBy(ByteBuffer came) {
        for (int i = 0; i < Math.min(came.position(), magic.length()); i++) {
            if (came.get(i) != magic.charAt(i)) {
                return false;
            }
        }
        return true;
    }

    /** The version in a hello or a reply. */
    public static int versionIn(ByteBuffer bytes) {
        return bytes.getInt(VERSION_OFFSET);
    }

    /** The secret of the listener that a hello is for. */
    public static byte[] secretIn(ByteBuffer hello) {
        byte[] secret = new byte[SECRET_BYTES];
        hello.get(SECRET_OFFSET, secret);
        return secret;
    }

    static ConnectionKey keyIn(ByteBuffer hello) {
        return new ConnectionKey(hello.getLong(KEY_HIGH_OFFSET), hello.getLong(KEY_LOW_OFFSET));
    }

    /** Bytes that should have been something else, as characters for a message; those that do not print are dots. */
    public static String excerpt(ByteBuffer bytes) {
        StringBuilder text = new StringBuilder();
        for (int i = bytes.position(); i < bytes.limit(); i++) {
            int value = bytes.get(i);
            text.append(value >= ' ' && value < 0x7f ? (char) value : '.');
        }
        return text.toString();
    }
}
