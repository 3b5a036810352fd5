package org.millrace.net.socket;

import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.millrace.foreign.PageMemory;

/**
 * Bytes of a stream that are not sent from the user's memory: headers, and the payload bytes that are copied behind
 * them. The pieces are contiguous, so that one write sends many of them. The bytes are kept until they are
 * acknowledged, because they are sent again if the stream is lost. Positions are counted from the beginning of the
 * stream.
 *
 * <p>
 * A header that is written alone may become a packet of its own. Such a packet costs more time than a packet that is
 * filled with copied payload bytes behind the header. Therefore a small payload is copied completely, and the beginning
 * of a large payload is copied.
 */
final class StagedOutput {

    /**
     * Maximum length of a completely copied payload. The value follows from measurements over loopback, with packets of
     * 64 KiB.
     */
    static final int WHOLE_PAYLOAD_BYTES = 64 << 10;

    /**
     * Number of bytes that are copied from the beginning of a longer payload. In measurements, a copy of this length
     * was as fast as a gather write. It was faster than no copy, and faster than a copy of 32 KiB.
     */
    private static final int BEGINNING_BYTES = 8 << 10;

    private final ByteBuffer buffer;
    private final int capacity;
    private long acknowledged;
    private long sent;
    private long end;
    /**
     * Position of the newest gap, which extends to the next multiple of the capacity. A gap exists because the next
     * bytes did not fit between its position and the end of the buffer.
     */
    private long gap = -1;

    /** Creates an empty buffer, which is allocated in the arena. */
    StagedOutput(int capacity, Arena memory) {
        this.capacity = capacity;
        buffer = PageMemory.allocate(capacity, memory).asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Returns the maximum length of contiguous bytes that can be added now. */
    private int room() {
        long free = capacity - (end - acknowledged);
        long behind = capacity - end % capacity;
        return (int) (free <= behind ? free : Math.max(behind, free - behind));
    }

    /** Returns whether the buffer has room for the longest payload that is copied completely. */
    boolean hasRoom() {
        return room() >= PieceFormat.BYTES + WHOLE_PAYLOAD_BYTES;
    }

    /** Returns the number of bytes to copy of a payload: 0 if they do not fit, -1 if the header does not fit. */
    int copies(int length) {
        int room = room() - PieceFormat.BYTES;
        int wanted = length <= WHOLE_PAYLOAD_BYTES ? length : BEGINNING_BYTES;
        return room < 0 ? -1 : wanted <= room ? wanted : 0;
    }

    /** Adds a number of bytes, which must fit. Returns the index in the buffer at which the caller must write them. */
    int add(int bytes) {
        if (end % capacity + bytes > capacity) {
            gap = end;
            end += capacity - end % capacity;
        }
        int at = (int) (end % capacity);
        end += bytes;
        return at;
    }

    ByteBuffer buffer() {
        return buffer;
    }

    /** Returns the position behind the newest added byte. */
    long end() {
        return end;
    }

    /** Returns the position behind the newest sent byte. */
    long sent() {
        return sent;
    }

    boolean isSent() {
        return sent == end;
    }

    /** Returns the next unsent bytes that are contiguous in the buffer. Unsent bytes must exist. */
    ByteBuffer unsent() {
        if (sent == gap) {
            sent += capacity - sent % capacity;
        }
        int at = (int) (sent % capacity);
        long until = sent < gap ? gap : end;
        return buffer.limit((int) Math.min(at + (until - sent), capacity)).position(at);
    }

    /** Records that a number of bytes were sent. */
    void moved(int bytes) {
        sent += bytes;
    }

    /** Records that all bytes before a position have arrived, and need not be kept. */
    void acknowledged(long position) {
        acknowledged = position;
        if (position == end && end % capacity != 0) {
            // The buffer has no unacknowledged bytes. The next bytes are written to its beginning, which is in the
            // processor's cache.
            end += capacity - end % capacity;
            sent = end;
            acknowledged = end;
        }
    }
}
