package org.millrace.net.connection;

import java.nio.charset.StandardCharsets;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Name of a lost process, as sent by a peer that ends its connections because of that loss. It is encoded in the words
 * of a frame's header, or in the same number of words of a ring.
 */
public final class LastWords {

    /** Number of words. */
    public static final int COUNT = 6;

    private LastWords() {}

    /** Returns one of the words; 0 behind the name's end, and without a name. */
    public static long word(@Nullable String lostPeer, int index) {
        byte[] bytes = lostPeer == null ? new byte[0] : lostPeer.getBytes(StandardCharsets.US_ASCII);
        long word = 0;
        for (int i = Math.min(bytes.length, (index + 1) * Long.BYTES) - 1; i >= index * Long.BYTES; i--) {
            word = word << Byte.SIZE | bytes[i] & 0xff;
        }
        return word;
    }

    /** Receives one of the words. */
    @FunctionalInterface
    public interface Writer {
        void put(int index, long word);
    }

    /** Writes the words of a name; zeros without a name. */
    public static void write(@Nullable String lostPeer, Writer to) {
        for (int i = 0; i < COUNT; i++) {
            to.put(i, word(lostPeer, i));
        }
    }

    /** Returns the name in the words, like {@link #name}. */
    public static @Nullable String read(IntToLongFunction words) {
        return name(IntStream.range(0, COUNT).mapToLong(words).toArray());
    }

    /**
     * Returns the name in the words; null without one. Unprintable characters become dots, because another process
     * wrote them.
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
