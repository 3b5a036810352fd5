package org.millrace.net.connection;

import java.nio.charset.StandardCharsets;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Name of a lost process. A peer sends the name when the peer closes its connections because of the loss. The name is
 * encoded in the words of a frame's header, or in the same number of words of a ring.
 */
public final class LostPeerName {

    public static final int COUNT = 6;

    private LostPeerName() {}

    /** Returns one of a name's words. Returns 0 for a word after the end of the name, or if the name is null. */
    public static long word(@Nullable String lostPeer, int index) {
        byte[] bytes = lostPeer == null ? new byte[0] : lostPeer.getBytes(StandardCharsets.US_ASCII);
        long word = 0;
        for (int i = Math.min(bytes.length, (index + 1) * Long.BYTES) - 1; i >= index * Long.BYTES; i--) {
            word = word << Byte.SIZE | bytes[i] & 0xff;
        }
        return word;
    }

    /** Function that stores one word of a name, by the index of the word. */
    @FunctionalInterface
    public interface Writer {
        void put(int index, long word);
    }

    /** Writes the words of a name; zeros if the name is null. */
    public static void write(@Nullable String lostPeer, Writer to) {
        for (int i = 0; i < COUNT; i++) {
            to.put(i, word(lostPeer, i));
        }
    }

    /** Returns the name that words contain, see {@link #name}. */
    public static @Nullable String read(IntToLongFunction words) {
        return name(IntStream.range(0, COUNT).mapToLong(words).toArray());
    }

    /**
     * Returns the name that words contain; null if they contain none. Unprintable characters become dots, because
     * another process wrote the words.
     */
    public static @Nullable String name(long... words) {
        StringBuilder name = new StringBuilder();
        for (int i = 0; i < COUNT * Long.BYTES; i++) {
            int character = (int) (words[i / Long.BYTES] >>> i % Long.BYTES * Byte.SIZE) & 0xff;
            if (character == 0) {
                break;
            }
            name.append(character >= ' ' && character < 0x7f ? (char) character : '.');
        }
        return name.isEmpty() ? null : name.toString();
    }
}
