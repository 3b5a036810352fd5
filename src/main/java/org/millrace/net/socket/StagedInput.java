package org.millrace.net.socket;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.PageMemory;
import org.millrace.net.connection.SilentLink;

/**
 * Bytes of a stream that were read ahead. One read delivers headers, and the small payloads between them. After a
 * payload that is too large for this, the next one is expected to be large, too. Then only a header is read, so that no
 * part of the payload is copied.
 */
final class StagedInput {

    /**
     * Maximum length of a payload that is read whole. A payload of 4 or 8 bytes is stored by a single access, because a
     * thread may poll the number at its destination.
     */
    static final int NUMBER_BYTES = Long.BYTES;

    private static final VarHandle INT = MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final VarHandle LONG = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
    /** After a payload longer than this, the next one is expected to be long, too. */
    private static final int LARGE_BYTES = 16 << 10;
    /** Size of the buffer in bytes. Small frames that arrive together are read together. */
    private static final int CAPACITY = 64 << 10;

    private final ByteBuffer buffer;
    private final int headerBytes;
    private int begin;
    private int end;
    private boolean afterLarge;

    /**
     * Creates an empty buffer.
     *
     * @param headerBytes length of the bytes before each payload
     * @param memory      arena of the buffer
     */
    StagedInput(int headerBytes, Arena memory) {
        this.headerBytes = headerBytes;
        buffer = PageMemory.allocate(CAPACITY, memory).asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Reads once, behind the available bytes. Returns the number of bytes, 0 if none has arrived, -1 at the end of the
     * stream.
     *
     * @param more whether the stream was read in this pass, and had data
     */
    public int fill(StreamInput stream, boolean more) throws IOException {
        buffer.clear();
        if (begin > 0) {
            // Less than a header or a number is left: a header is taken together with the beginning of a longer
            // payload.
            buffer.put(0, buffer, begin, end - begin);
            end -= begin;
            begin = 0;
        }
        int read = stream.read(buffer.limit(afterLarge ? headerBytes : CAPACITY).position(end), more);
        end += Math.max(read, 0);
        return read;
    }

    /** Returns whether the last {@link #fill} could have read more. */
    public boolean hasRoom() {
        return buffer.hasRemaining();
    }

    public boolean hasHeader() {
        return bytes() >= headerBytes;
    }

    /** Returns the number of available bytes. */
    public int bytes() {
        return end - begin;
    }

    /** Returns the process that the sender of a shutdown message has lost; null without one. */
    public @Nullable String lostPeer() {
        return HeaderFormat.lostPeer(buffer, begin);
    }

    /** Returns the link that the peer reports as silent; null without one. */
    public @Nullable SilentLink silentLink() {
        return SilentLink.of(HeaderFormat.words(buffer, begin));
    }

    public boolean isShutdown() {
        return HeaderFormat.isShutdown(buffer, begin);
    }

    /** Returns the buffer with the header at {@link #begin}. */
    public ByteBuffer buffer() {
        return buffer;
    }

    public int begin() {
        return begin;
    }

    /** Continues behind the header, at its payload. */
    public void skipHeader(long payloadBytes) {
        begin += headerBytes;
        afterLarge = payloadBytes > LARGE_BYTES - headerBytes;
    }

    /** Copies available bytes of a payload to their destination. Returns their number, up to {@code length}. */
    public int takePayload(ByteBuffer view, int start, int length) {
        int bytes = Math.min(length, bytes());
        if (bytes == 0) {
            return 0;
        }
        view.clear();
        buffer.clear();
        switch (bytes) {
            case Integer.BYTES -> INT.set(view, start, (int) INT.get(buffer, begin));
            case Long.BYTES -> LONG.set(view, start, (long) LONG.get(buffer, begin));
            default -> view.put(start, buffer, begin, bytes);
        }
        begin += bytes;
        return bytes;
    }
}
