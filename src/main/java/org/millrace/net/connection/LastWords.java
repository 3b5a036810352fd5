package org.millrace.net.connection;

import java.nio.charset.StandardCharsets;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The name of a process that was lost, as a peer that ends its connections for it says it: in the words of a frame's
 * header, or in as many words of a ring.
 */
public final class LastWords {

    /** How many words there are. */
    public static final int COUNT = 6;

    private LastWords() {}

    /** One of the words; 0 for those behind the name's end, and for no name. */
    public static long word(@Nullable String lostPeer, int index) {
        byte[] bytes = lostPeer == null ? new byte[0] : lostPeer.getBytes(StandardCharsets.US_ASCII);
        long word = 0;
        for (int i = Math.min(bytes.length, (index + 1) * Long.BYTES) - 1; i >= index * Long.BYTES; i--) {
            word = word << Byte.SIZE | bytes[i] & 0xff;
        }
        return word;
    }

    /** Takes one of the words. */
    @FunctionalInterface
    public interface Writer {
        void put(int index, long word);
    }

    /** Writes the words of a name; zeros for none. */
    public static void write(@Nullable String lostPeer, Writer to) {
        for (int i = 0; i < COUNT; i++) {
            to.put(i, word(lostPeer, i));
        }
    }

    /** The name in the words, as {@link #name} reads it. */
    public static @Nullable String read(IntToLongFunction words) {
        return name(IntStream.range(0, COUNT).mapToLong(words).toArray());
    }

    /** The name in the words; null if there is none. What does not print is a dot: another process wrote them. */
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
