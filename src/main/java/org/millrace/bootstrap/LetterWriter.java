package org.millrace.bootstrap;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Writer of the bytes that a rank passes to {@link ControlPlane#allGather}. {@link RankLetter} reads them on the other
 * ranks.
 */
final class LetterWriter {

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

    LetterWriter number(int number) {
        bytes.writeBytes(ByteBuffer.allocate(Integer.BYTES).putInt(0, number).array());
        return this;
    }

    LetterWriter sized(byte[] data) {
        number(data.length).bytes.writeBytes(data);
        return this;
    }

    LetterWriter text(String text) {
        return sized(text.getBytes(StandardCharsets.UTF_8));
    }

    byte[] bytes() {
        return bytes.toByteArray();
    }
}
