package org.millrace.trace;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import org.millrace.trace.TraceLayout.Text;

/** Bytes that were read from a part of a file. Bytes after the file's end are zeros. */
final class TraceBytes {

    private final ByteBuffer bytes;

    private TraceBytes(ByteBuffer bytes) {
        this.bytes = bytes.order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Reads a part of a file. The file is not mapped, because another process may truncate it. */
    static TraceBytes read(FileChannel channel, long offset, int length) throws IOException {
        ByteBuffer into = ByteBuffer.allocate(length);
        while (into.hasRemaining()) {
            int read = channel.read(into, offset + into.position());
            if (read < 0) {
                break;
            }
        }
        return new TraceBytes(into.clear());
    }

    /** Copies a part of this process's mapped trace. */
    static TraceBytes copy(long address, int length) {
        return new TraceBytes(ByteBuffer.wrap(TraceMemory.bytes(address, length)));
    }

    long longAt(int offset) {
        return bytes.getLong(offset);
    }

    int intAt(int offset) {
        return bytes.getInt(offset);
    }

    /** Returns a counter; 0 if the stored number is negative. */
    long countAt(int offset) {
        return Math.max(0, longAt(offset));
    }

    /** Returns text up to its first zero. Characters that control a terminal are replaced. */
    String textAt(Text place) {
        int end = 0;
        while (end < place.bytes() && bytes.get(place.offset() + end) != 0) {
            end++;
        }
        byte[] encoded = new byte[end];
        bytes.get(place.offset(), encoded);
        return printable(new String(encoded, StandardCharsets.UTF_8));
    }

    private static String printable(String text) {
        StringBuilder clean = new StringBuilder(text.length());
        text.codePoints().forEach(point -> {
            boolean harmless = point == '\n' || !Character.isISOControl(point)
                    && Character.getType(point) != Character.FORMAT && Character.getType(point) != Character.SURROGATE;
            clean.appendCodePoint(harmless ? point : '?');
        });
        return clean.toString();
    }

    TraceBytes slice(int offset, int length) {
        return new TraceBytes(bytes.slice(offset, length));
    }
}
