package org.millrace.net.socket;

import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.millrace.foreign.PageMemory;

/**
 * The bytes of a stream that are not sent from the user's memory: headers and the payload bytes behind them, one piece
 * behind the other, so that one write sends many. They stay until they are acknowledged, as they are sent again if the
 * stream is lost. Positions count from the beginning of the stream.
 *
 * <p>
 * A header alone would be a packet of its own on a connection that has nothing else to send, which costs more than to
 * copy what fills the packet up. So a small payload is copied whole, and of a large one the beginning.
 */
final class StagedOutput {

    /** A payload of up to this many bytes is copied whole: measured over loopback, where a packet holds 64 KiB. */
    static final int WHOLE_PAYLOAD_BYTES = 64 << 10;

    /** Of a longer one so many bytes are copied: measured as good as a gather write, and better than none or 32 KiB. */
    private static final int BEGINNING_BYTES = 8 << 10;

    private final ByteBuffer buffer;
    private final int capacity;
    private long acknowledged;
    private long sent;
    private long end;
    /**
     * Where the last gap begins, which is up to a multiple of the capacity: what did not fit there begins behind it.
     */
    private long gap = -1;

    /** Nothing is here yet; it ends with the arena. */
    StagedOutput(int capacity, Arena memory) {
        this.capacity = capacity;
        buffer = PageMemory.allocate(capacity, memory).asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }

    /** The longest that can be added now. */
    private int room() {
        long free = capacity - (end - acknowledged);
        long behind = capacity - end % capacity;
        return (int) (free <= behind ? free : Math.max(behind, free - behind));
    }

    /** Whether there is room for any payload that is copied. */
    boolean hasRoom() {
        return room() >= PieceFormat.BYTES + WHOLE_PAYLOAD_BYTES;
    }

    /** How many bytes of a payload of this length are copied now; -1 if there is no room even for its header. */
    int copies(int length) {
        int room = room() - PieceFormat.BYTES;
        int wanted = length <= WHOLE_PAYLOAD_BYTES ? length : BEGINNING_BYTES;
        return room < 0 ? -1 : wanted <= room ? wanted : 0;
    }

    /** Adds so many bytes, which fit; returns where they are in the buffer. */
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

    /** Position behind the last byte that was added. */
    long end() {
        return end;
    }

    /** Position behind the last byte that was sent. */
    long sent() {
        return sent;
    }

    boolean isSent() {
        return sent == end;
    }

    /** What is to be sent next, as far as it lies in one piece; there must be some. */
    ByteBuffer unsent() {
        if (sent == gap) {
            sent += capacity - sent % capacity;
        }
        int at = (int) (sent % capacity);
        long until = sent < gap ? gap : end;
        return buffer.limit((int) Math.min(at + (until - sent), capacity)).position(at);
    }

    /** Notes that bytes were sent. */
    void moved(int bytes) {
        sent += bytes;
    }

    /** Notes that all before a position has arrived. */
    void acknowledged(long position) {
        acknowledged = position;
        if (position == end && end % capacity != 0) {
            // The same memory again is in the cache.
            end += capacity - end % capacity;
            sent = end;
            acknowledged = end;
        }
    }
}
