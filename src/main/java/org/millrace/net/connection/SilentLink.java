package org.millrace.net.connection;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * A link over which nothing comes, as one of its ends says it to its other peers: in the six words of a frame's header.
 * These are the lengths of the addresses, the addresses, and as much of the host's name as there is room for; zeros say
 * that there is no such link any more.
 *
 * @param local the address of the host that says it
 * @param host  that host's name
 */
public record SilentLink(InetAddress local, InetAddress remote, String host) {

    /** How many words there are. */
    public static final int WORDS = 6;

    /** The words; zeros for no link. */
    public static long[] words(@Nullable SilentLink link) {
        ByteBuffer bytes = ByteBuffer.allocate(WORDS * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        if (link != null) {
            byte[] one = link.local.getAddress();
            byte[] other = link.remote.getAddress();
            bytes.put((byte) one.length).put((byte) other.length).put(one).put(other);
            byte[] name = link.host.getBytes(StandardCharsets.UTF_8);
            bytes.put(name, 0, Math.min(name.length, bytes.remaining()));
        }
        long[] words = new long[WORDS];
        bytes.clear().asLongBuffer().get(words);
        return words;
    }

    /** The link in the words; null for none, and for words of another kind: another process wrote them. */
    public static @Nullable SilentLink of(long[] words) {
        ByteBuffer bytes = ByteBuffer.allocate(WORDS * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        bytes.asLongBuffer().put(words);
        byte[] one = new byte[bytes.get() & 0x1f];
        byte[] other = new byte[bytes.get() & 0x1f];
        if (one.length + other.length > bytes.remaining()) {
            return null;
        }
        bytes.get(one).get(other);
        byte[] name = Arrays.copyOfRange(bytes.array(), bytes.position(), bytes.capacity());
        try {
            return new SilentLink(InetAddress.getByAddress(one), InetAddress.getByAddress(other),
                    PeerText.line(new String(name, StandardCharsets.UTF_8).replace("\0", "")));
        } catch (UnknownHostException noAddress) {
            return null;
        }
    }

    /** Whether both are of the same two addresses. */
    boolean isSame(InetAddress one, InetAddress other) {
        return local.equals(one) && remote.equals(other) || local.equals(other) && remote.equals(one);
    }
}
