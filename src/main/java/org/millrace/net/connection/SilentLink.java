package org.millrace.net.connection;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * A silent link between two hosts. One of the two hosts reports the link to its other peers, in six words of a frame's
 * header. The words hold the lengths of the addresses, the addresses, and the beginning of the host's name. Zeros
 * report that the silence has ended.
 *
 * @param local  address of the reporting host
 * @param remote address of the host at the other end
 * @param host   name of the reporting host
 */
public record SilentLink(InetAddress local, InetAddress remote, String host) {

    public static final int WORDS = 6;

    /** Returns the words of a link; zeros if the link is null. */
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

    /**
     * Returns the link that the given words encode; null if they encode none or are invalid. They may be invalid,
     * because another process wrote them.
     */
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

    /** Returns whether this link connects two addresses, in any order. */
    boolean isSame(InetAddress one, InetAddress other) {
        return local.equals(one) && remote.equals(other) || local.equals(other) && remote.equals(one);
    }
}
