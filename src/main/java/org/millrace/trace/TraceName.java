package org.millrace.trace;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** A short name that is written down again and again: encoded once, so that nothing is allocated for it. */
public final class TraceName {

    static final int BYTES = CommunicatorFields.OPERATION_NAME_BYTES;

    private final String text;
    private final long[] words = new long[BYTES / Long.BYTES];

    private TraceName(String text) {
        this.text = text;
        byte[] encoded = Arrays.copyOf(text.getBytes(StandardCharsets.UTF_8), BYTES);
        ByteBuffer.wrap(encoded).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(words);
    }

    /** A name of at most {@value #BYTES} bytes; what is longer is cut. */
    public static TraceName of(String text) {
        return new TraceName(text);
    }

    void store(long address) {
        for (int word = 0; word < words.length; word++) {
            TraceMemory.set(address + (long) word * Long.BYTES, words[word]);
        }
    }

    @Override
    public String toString() {
        return text;
    }
}
