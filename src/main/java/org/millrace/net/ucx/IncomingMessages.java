package org.millrace.net.ucx;

import org.millrace.net.FrameHeader;

/**
 * Buffers that wait for messages, and the message whose frames are being taken. What needs the worker's turn says so;
 * the rest is the receiver's thread's.
 */
final class IncomingMessages {

    private static final int MASK = UcxFormat.BUFFERS - 1;

    private final UcxEnd end;
    private final long tag;
    private final int bufferBytes;
    private final long buffers;
    private final long[] requests = new long[UcxFormat.BUFFERS];
    private final CountMessages credits;
    /** Messages that came, the one that is being taken among them. */
    private long came;
    /** Messages whose frames were all taken. */
    private long taken;
    /** Messages whose buffers wait again. */
    private long returned;
    /** In the message that is being taken: its next frame, and its end. */
    private long at;
    private long limit;

    /** Buffers that wait, of a length; the sender is told of them with a tag. With the turn. */
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

    /** Reads the next frame's header, if one has come. With the turn. */
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

    /** Whether a payload came with its header. */
    boolean isInline(long payloadBytes) {
        return UcxFormat.isInline(payloadBytes, bufferBytes);
    }

    /** Goes on behind the frame whose header was read last, with a copy of its payload if that came with it. */
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

    /** Lets buffers wait again, and tells the sender now and then. With the turn. */
    void giveBack() {
        while (returned < taken) {
            await((int) returned & MASK);
            returned++;
        }
        if (returned - credits.count() >= UcxFormat.CREDIT_INTERVAL) {
            credits.tell(returned);
        }
    }

    /** Waits for messages no more. With the turn. */
    void cancel() {
        for (long request : requests) {
            end.cancel(request);
        }
    }

    /** Whether UCX has no request; those that are over are freed. With the turn. */
    boolean isIdle() {
        return end.areOver(requests) & credits.isIdle();
    }
}
