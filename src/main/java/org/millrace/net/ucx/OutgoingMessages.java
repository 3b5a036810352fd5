package org.millrace.net.ucx;

import org.millrace.ffi.ucx.ucp_h;

/**
 * Messages with headers and short payloads in flight. They are written here, with all available frames in one message,
 * and sent while the receiver has buffers for them. Callers of all methods must hold the worker's turn.
 */
final class OutgoingMessages {

    private static final int MASK = UcxFormat.BUFFERS - 1;

    private final UcxEnd end;
    private final long tag;
    private final int bufferBytes;
    private final long buffers;
    private final long[] requests = new long[UcxFormat.BUFFERS];
    /** Credits: number of messages with buffers that the receiver has posted again. */
    private final CountMessages credits;
    private long sent;
    /** Length in bytes of the message that is being written. */
    private long filled;

    /** Begins without a message. The receiver has buffers of one length, and sends credits with their own tag. */
    OutgoingMessages(UcxEnd end, long tag, long creditTag, int bufferBytes) {
        this.end = end;
        this.tag = tag;
        this.bufferBytes = bufferBytes;
        buffers = end.arena.allocate((long) UcxFormat.BUFFERS * bufferBytes, 64).address();
        credits = CountMessages.receiver(end, creditTag);
    }

    /** Returns whether a payload follows its header in the message. */
    boolean isInline(long payloadBytes) {
        return UcxFormat.isInline(payloadBytes, bufferBytes);
    }

    /** Returns whether a message may be written. */
    boolean hasRoom() {
        int slot = (int) sent & MASK;
        if (sent - credits.count() == UcxFormat.BUFFERS) {
            return false;
        }
        requests[slot] = end.sent(requests[slot]);
        return requests[slot] == 0;
    }

    /** Writes a frame behind the frames in the message. Returns false if the message has no room for it. */
    boolean add(long header, long payload, long payloadBytes) {
        boolean inline = isInline(payloadBytes);
        long bytes = UcxFormat.frameBytes(payloadBytes, inline);
        if (filled + bytes > bufferBytes) {
            return false;
        }
        long at = buffer(sent) + filled;
        UcxFormat.copy(header, at, UcxFormat.HEADER_BYTES);
        if (inline && payloadBytes > 0) {
            UcxFormat.copy(payload, at + UcxFormat.HEADER_BYTES, payloadBytes);
        }
        filled += bytes;
        return true;
    }

    /** Sends the written message. */
    void send() {
        requests[(int) sent & MASK] =
                end.begun(ucp_h.ucp_tag_send_nbx(end.endpoint(), buffer(sent), filled, tag, end.eagerSend));
        sent++;
        filled = 0;
    }

    private long buffer(long message) {
        return buffers + (message & MASK) * bufferBytes;
    }

    /** Receives credits. Returns the number of further messages that have buffers. */
    long readCredits() {
        long more = credits.listen();
        if (credits.count() > sent) {
            throw end.notProtocol("it had buffers for " + credits.count() + " messages, of " + sent);
        }
        return more;
    }

    /** Cancels the receives of credits. */
    void cancel() {
        credits.cancel();
    }

    /** Returns whether UCX has no request. Frees complete requests. */
    boolean isIdle() {
        return end.areOver(requests) & credits.isIdle();
    }
}
