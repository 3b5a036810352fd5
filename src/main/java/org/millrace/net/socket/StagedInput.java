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
 * Bytes of a stream that were read ahead into a buffer. One read delivers several headers and the small payloads
 * between them. After a large payload the next payload is expected to be large, too. In this case only the next header
 * is read ahead, so that no part of the next payload has to be copied.
 */
final class StagedInput {

    /**
     * Maximum length of a payload that may be a single number. A payload up to this length is stored only after all its
     * bytes have arrived. If the payload has 4 or 8 bytes, one memory access stores it, because another thread may poll
     * the number.
     */
    static final int NUMBER_BYTES = Long.BYTES;

    private static final VarHandle INT = MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final VarHandle LONG = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
    /** Total length of a header and its payload above which the next payload is expected to be large, too. */
    private static final int LARGE_BYTES = 16 << 10;
    /** Size of the buffer in bytes. The buffer is large enough for one read of many small frames. */
    private static final int CAPACITY = 64 << 10;

    private final ByteBuffer buffer;
    private final int headerBytes;
    private int begin;
    private int end;
    private boolean afterLarge;

    /**
     * @param headerBytes length of the bytes before each payload
     * @param memory      arena that the buffer is allocated in
     */
    StagedInput(int headerBytes, Arena memory) {
        this.headerBytes = headerBytes;
        buffer = PageMemory.allocate(CAPACITY, memory).asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Reads once, and stores the data behind the available bytes. Returns the number of bytes; 0 if no data has
     * arrived; -1 at the end of the stream.
     *
     * @param more whether an earlier read in the same pass returned data
     */
    public int fill(StreamInput stream, boolean more) throws IOException {
        buffer.clear();
        if (begin > 0) {
            // The buffer contains at most the beginning of a header, or the beginning of a payload of at most
            // NUMBER_BYTES. The available bytes of a payload longer than NUMBER_BYTES are always taken with the
            // payload's header.
            buffer.put(0, buffer, begin, end - begin);
            end -= begin;
            begin = 0;
        }
        int read = stream.read(buffer.limit(afterLarge ? headerBytes : CAPACITY).position(end), more);
        end += Math.max(read, 0);
        return read;
    }

    /** Returns whether the last {@link #fill} had room for more data. */
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

    /** Returns the lost process that is named in the peer's shutdown message; null if the message names none. */
    public @Nullable String lostPeer() {
        return HeaderFormat.lostPeer(buffer, begin);
    }

    /** Returns the link that the peer reports as silent; null if the peer reports no silent link. */
    public @Nullable SilentLink silentLink() {
        return SilentLink.of(HeaderFormat.words(buffer, begin));
    }

    public boolean isShutdown() {
        return HeaderFormat.isShutdown(buffer, begin);
    }

    /** Returns the buffer. The next header is at {@link #begin}. */
    public ByteBuffer buffer() {
        return buffer;
    }

    public int begin() {
        return begin;
    }

    /** Removes the header, so that the available bytes begin with the payload. */
    public void skipHeader(long payloadBytes) {
        begin += headerBytes;
        afterLarge = payloadBytes > LARGE_BYTES - headerBytes;
    }

    /** Moves at most {@code length} available bytes of a payload to their destination. Returns the number of bytes. */
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
