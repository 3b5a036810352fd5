package org.millrace.net.socket;

import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.millrace.foreign.PageMemory;

/**
 * Bytes of a stream that are not sent from the user's memory: headers and the payload bytes behind them. The pieces lie
 * one behind the other, so that one write sends many. They stay until they are acknowledged, because they are resent if
 * the stream is lost. Positions count from the beginning of the stream.
 *
 * <p>
 * A header alone would be a separate packet on a connection without other data, which costs more than a copy that fills
 * the packet. A small payload is therefore copied whole, and a large one's beginning is copied.
 */
final class StagedOutput {

    /** Maximum length of a payload that is copied whole, measured over loopback, where a packet holds 64 KiB. */
    static final int WHOLE_PAYLOAD_BYTES = 64 << 10;

    /**
     * Number of bytes copied of a longer payload: measured as good as a gather write, and better than none or 32 KiB.
     */
    private static final int BEGINNING_BYTES = 8 << 10;

    private final ByteBuffer buffer;
    private final int capacity;
    private long acknowledged;
    private long sent;
    private long end;
    /**
     * Position of the last gap. It extends to a multiple of the capacity, because the next bytes did not fit before it.
     */
    private long gap = -1;

    /** Creates an empty buffer in the arena. */
    StagedOutput(int capacity, Arena memory) {
        this.capacity = capacity;
        buffer = PageMemory.allocate(capacity, memory).asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Returns the maximum number of bytes that can be added now. */
    private int room() {
        long free = capacity - (end - acknowledged);
        long behind = capacity - end % capacity;
        return (int) (free <= behind ? free : Math.max(behind, free - behind));
    }

    /** Returns whether any copied payload fits. */
    boolean hasRoom() {
        return room() >= PieceFormat.BYTES + WHOLE_PAYLOAD_BYTES;
    }

    /** Returns the number of bytes to copy of a payload of this length; -1 without room for its header. */
    int copies(int length) {
        int room = room() - PieceFormat.BYTES;
        int wanted = length <= WHOLE_PAYLOAD_BYTES ? length : BEGINNING_BYTES;
        return room < 0 ? -1 : wanted <= room ? wanted : 0;
    }

    /** Adds a number of bytes, which must fit. Returns their place in the buffer. */
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

    /** Returns the position behind the last added byte. */
    long end() {
        return end;
    }

    /** Returns the position behind the last sent byte. */
    long sent() {
        return sent;
    }

    boolean isSent() {
        return sent == end;
    }

    /** Returns the next unsent bytes, as far as they are contiguous. Some must exist. */
    ByteBuffer unsent() {
        if (sent == gap) {
            sent += capacity - sent % capacity;
        }
        int at = (int) (sent % capacity);
        long until = sent < gap ? gap : end;
        return buffer.limit((int) Math.min(at + (until - sent), capacity)).position(at);
    }

    /** Records that bytes were sent. */
    void moved(int bytes) {
        sent += bytes;
    }

    /** Records that all bytes before a position have arrived. */
    void acknowledged(long position) {
        acknowledged = position;
        if (position == end && end % capacity != 0) {
            // Starts at the same memory again, which is in the cache.
            end += capacity - end % capacity;
            sent = end;
            acknowledged = end;
        }
    }
}
