package org.millrace.net.socket;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.millrace.net.FrameHeader;

/**
 * The bytes of stream 0 that are not sent from their own memory: headers and the payload bytes behind them, one frame
 * behind the other, so that one write sends many. Positions count from the beginning of the connection.
 *
 * <p>
 * A header alone would be a packet of its own on a connection that has nothing else to send, which costs more than to
 * copy what fills the packet up. So a small payload is copied whole, and of a large one the beginning.
 */
final class StagedOutput {

    /** A payload of up to this many bytes is copied whole: measured over loopback, where a packet holds 64 KiB. */
    private static final int WHOLE_PAYLOAD_BYTES = 64 << 10;

    /** Of a longer one so many bytes are copied: measured as good as a gather write, and better than none or 32 KiB. */
    private static final int BEGINNING_BYTES = 8 << 10;

    /** Room for payloads, beside that for a header of every frame that can be in flight. */
    private static final int PAYLOAD_ROOM = 128 << 10;

    private final ByteBuffer buffer;
    private final int maxBytes;
    private long base;
    private int sent;
    private int end;

    StagedOutput(int framesInFlight) {
        maxBytes = framesInFlight * HeaderFormat.BYTES + PAYLOAD_ROOM;
        // Twice what it may hold: when the end is reached, at least half was sent, and moving the rest to the front
        // costs less than one more copy of each byte.
        buffer = ByteBuffer.allocateDirect(2 * maxBytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Adds a frame's header, and of its payload what is better copied.
     *
     * @param view   memory of the payload; may be null if length is 0
     * @param start  of the payload in the view
     * @param length of the payload's part that goes on this stream
     * @param frames how many frames, this one among them, need room for a header
     * @return how many bytes of the payload were copied
     */
    int add(FrameHeader header, ByteBuffer view, int start, int length, int frames) {
        // None is left, and less, when a frame has ended since whose header was sent before: payloads took its room.
        int room = Math.max(maxBytes - (end - sent) - frames * HeaderFormat.BYTES, 0);
        int copied = Math.min(length <= WHOLE_PAYLOAD_BYTES ? length : BEGINNING_BYTES, room);
        int at = reserve(HeaderFormat.BYTES + copied);
        HeaderFormat.encodeData(header, buffer, at);
        if (copied > 0) {
            buffer.put(at + HeaderFormat.BYTES, view.clear(), start, copied);
        }
        return copied;
    }

    private int reserve(int bytes) {
        buffer.clear();
        if (end + bytes > buffer.capacity()) {
            buffer.put(0, buffer, sent, end - sent);
            base += sent;
            end -= sent;
            sent = 0;
        }
        int at = end;
        end += bytes;
        return at;
    }

    /** Position behind the last byte that was added. */
    long end() {
        return base + end;
    }

    /** Position behind the last byte that was sent. */
    long sent() {
        return base + sent;
    }

    /** What is to be sent before a position. */
    ByteBuffer until(long position) {
        return buffer.limit((int) (position - base)).position(sent);
    }

    /** Notes that bytes were sent. */
    void moved(int bytes) {
        sent += bytes;
        if (sent == end) {
            base += end;
            sent = 0;
            end = 0;
        }
    }
}
