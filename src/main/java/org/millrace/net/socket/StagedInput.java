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
 * The bytes of a stream that were read ahead: one read brings headers, and the small payloads between them. After a
 * payload that is too large for this, the next is expected to be so too, and only a header is read, so that nothing of
 * the payload is copied.
 */
final class StagedInput {

    /**
     * A payload of up to so many bytes is taken whole, and one of 4 or 8 stored at once: somebody may poll for the
     * number where it goes.
     */
    static final int NUMBER_BYTES = Long.BYTES;

    private static final VarHandle INT = MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final VarHandle LONG = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
    /** After a payload of more than this the next is expected to be so too. */
    private static final int LARGE_BYTES = 16 << 10;
    /** Small frames that arrive together are read together. */
    private static final int CAPACITY = 64 << 10;

    private final ByteBuffer buffer;
    private final int headerBytes;
    private int begin;
    private int end;
    private boolean afterLarge;

    /**
     * Nothing was read yet.
     *
     * @param headerBytes length of what goes before each payload
     * @param memory      with whose end it ends
     */
    StagedInput(int headerBytes, Arena memory) {
        this.headerBytes = headerBytes;
        buffer = PageMemory.allocate(CAPACITY, memory).asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Reads once what has arrived, behind what is here; returns how many bytes, 0 if none has arrived, -1 at the end of
     * the stream.
     *
     * @param more whether the stream was read in this pass, and had something
     */
    public int fill(StreamInput stream, boolean more) throws IOException {
        buffer.clear();
        if (begin > 0) {
            // Less than a header or a number is left: a header is taken with what is here of a longer payload.
            buffer.put(0, buffer, begin, end - begin);
            end -= begin;
            begin = 0;
        }
        int read = stream.read(buffer.limit(afterLarge ? headerBytes : CAPACITY).position(end), more);
        end += Math.max(read, 0);
        return read;
    }

    /** Whether the last {@link #fill} could have read more. */
    public boolean hasRoom() {
        return buffer.hasRemaining();
    }

    public boolean hasHeader() {
        return bytes() >= headerBytes;
    }

    /** How many bytes are here. */
    public int bytes() {
        return end - begin;
    }

    /** Whom the peer that sends a shutdown message has lost; null if nobody. */
    public @Nullable String lostPeer() {
        return HeaderFormat.lostPeer(buffer, begin);
    }

    /** The link that the peer says is silent; null if none is. */
    public @Nullable SilentLink silentLink() {
        return SilentLink.of(HeaderFormat.words(buffer, begin));
    }

    public boolean isShutdown() {
        return HeaderFormat.isShutdown(buffer, begin);
    }

    /** The buffer with the header at {@link #begin}. */
    public ByteBuffer buffer() {
        return buffer;
    }

    public int begin() {
        return begin;
    }

    /** Goes on behind the header, to a payload of so many bytes. */
    public void skipHeader(long payloadBytes) {
        begin += headerBytes;
        afterLarge = payloadBytes > LARGE_BYTES - headerBytes;
    }

    /** Copies what is here of a payload to where it belongs; returns how many bytes, up to length. */
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
