package org.millrace.net.ucx;

import org.millrace.net.FrameHeader;

/**
 * Buffers that wait for messages, and the message with the frames that are currently taken. Methods that require the
 * worker's turn state it. The receiver's thread calls the others.
 */
final class IncomingMessages {

    private static final int MASK = UcxFormat.BUFFERS - 1;

    private final UcxEnd end;
    private final long tag;
    private final int bufferBytes;
    private final long buffers;
    private final long[] requests = new long[UcxFormat.BUFFERS];
    private final CountMessages credits;
    /** Number of messages that arrived, with the current one. */
    private long came;
    /** Number of messages with all frames taken. */
    private long taken;
    /** Number of messages with buffers that wait again. */
    private long returned;
    /** Addresses in the current message: its next frame, and its end. */
    private long at;
    private long limit;

    /**
     * Posts buffers of one length. Credits for them go to the sender with their own tag. The caller must hold the
     * worker's turn.
     */
    IncomingMessages(UcxEnd end, long tag, long creditTag, int bufferBytes) {
        this.end = end;
        this.tag = tag;
        this.bufferBytes = bufferBytes;
        buffers = end.arena.allocate((long) UcxFormat.BUFFERS * bufferBytes, 64).address();
        credits = CountMessages.sender(end, creditTag);
        for (int slot = 0; slot < UcxFormat.BUFFERS; slot++) {
            await(slot);
        }
    }

    private void await(int slot) {
        requests[slot] = end.receive(buffer(slot), bufferBytes, tag, end.plainReceive);
    }

    private long buffer(long message) {
        return buffers + (message & MASK) * bufferBytes;
    }

    /** Reads the next frame's header, if one has arrived. The caller must hold the worker's turn. */
    boolean next(FrameHeader header) {
        if (came == taken) {
            int slot = (int) came & MASK;
            if (came - returned == UcxFormat.BUFFERS) {
                return false;
            }
            long bytes = end.received(requests[slot]);
            if (bytes == UcxEnd.UNDER_WAY) {
                return false;
            }
            requests[slot] = bytes == UcxEnd.FAILED ? UcxEnd.FAILED : 0;
            if (bytes == UcxEnd.FAILED) {
                return false;
            }
            at = buffer(came);
            limit = at + bytes;
            came++;
        }
        if (!UcxFormat.decode(at, limit - at, header)
                || UcxFormat.frameBytes(header.payloadBytes(), isInline(header.payloadBytes())) > limit - at) {
            throw end.notProtocol("a header with " + (limit - at) + " bytes behind its beginning makes no sense");
        }
        return true;
    }

    /** Returns whether a payload follows its header in the message. */
    boolean isInline(long payloadBytes) {
        return UcxFormat.isInline(payloadBytes, bufferBytes);
    }

    /** Moves behind the frame of the last header. Copies its payload if the payload followed the header. */
    void take(long payloadBytes, long destination) {
        boolean inline = isInline(payloadBytes);
        if (inline && payloadBytes > 0) {
            UcxFormat.copy(at + UcxFormat.HEADER_BYTES, destination, payloadBytes);
        }
        at += UcxFormat.frameBytes(payloadBytes, inline);
        if (at == limit) {
            taken++;
        }
    }

    /** Posts free buffers again, and sends credits for them at intervals. The caller must hold the worker's turn. */
    void giveBack() {
        while (returned < taken) {
            await((int) returned & MASK);
            returned++;
        }
        if (returned - credits.count() >= UcxFormat.CREDIT_INTERVAL) {
            credits.tell(returned);
        }
    }

    /** Cancels the waiting buffers. The caller must hold the worker's turn. */
    void cancel() {
        for (long request : requests) {
            end.cancel(request);
        }
    }

    /** Returns whether UCX has no request. Frees complete requests. The caller must hold the worker's turn. */
    boolean isIdle() {
        return end.areOver(requests) & credits.isIdle();
    }
}
