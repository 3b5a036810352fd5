package org.millrace.net.base;

import java.nio.ByteBuffer;

/** Bytes that should have been something else, made readable for a message. */
public final class Excerpt {

    private Excerpt() {}

    /** The bytes of a buffer as characters; those that do not print are dots. */
    public static String of(ByteBuffer bytes) {
        StringBuilder text = new StringBuilder();
        for (int i = bytes.position(); i < bytes.limit(); i++) {
            int value = bytes.get(i);
            text.append(value >= ' ' && value < 0x7f ? (char) value : '.');
        }
        return text.toString();
    }
}
