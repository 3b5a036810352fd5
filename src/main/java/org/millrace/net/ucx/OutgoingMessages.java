package org.millrace.net.ucx;

import org.millrace.ffi.ucx.ucp_h;

/**
 * Messages with headers and short payloads on their way: written here, as many frames in one as there are, and sent
 * while the receiver has buffers for them. With the worker's turn, all of it.
 */
final class OutgoingMessages {

    private static final int MASK = UcxFormat.BUFFERS - 1;

    private final UcxEnd end;
    private final long tag;
    private final int bufferBytes;
    private final long buffers;
    private final long[] requests = new long[UcxFormat.BUFFERS];
    /** For how many the receiver has had buffers that wait again. */
    private final CountMessages credits;
    private long sent;
    /** Length of the message that is being written. */
    private long filled;

    /** No message yet, to a receiver with buffers of a length, which tells of them with a tag. */
    OutgoingMessages(UcxEnd end, long tag, long creditTag, int bufferBytes) {
        this.end = end;
        this.tag = tag;
        this.bufferBytes = bufferBytes;
        buffers = end.arena.allocate((long) UcxFormat.BUFFERS * bufferBytes, 64).address();
        credits = CountMessages.receiver(end, creditTag);
    }

    /** Whether a payload goes with its header. */
    boolean isInline(long payloadBytes) {
        return UcxFormat.isInline(payloadBytes, bufferBytes);
    }

    /** Whether a message may be written. */
    boolean hasRoom() {
        int slot = (int) sent & MASK;
        if (sent - credits.count() == UcxFormat.BUFFERS) {
            return false;
        }
        requests[slot] = end.sent(requests[slot]);
        return requests[slot] == 0;
    }

    /** Writes a frame behind those that are in the message; false if it has no room for it. */
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

    /** Sends what was written. */
    void send() {
        requests[(int) sent & MASK] =
                end.begun(ucp_h.ucp_tag_send_nbx(end.endpoint(), buffer(sent), filled, tag, end.eagerSend));
        sent++;
        filled = 0;
    }

    private long buffer(long message) {
        return buffers + (message & MASK) * bufferBytes;
    }

    /** Hears for how many more messages there are buffers. */
    long readCredits() {
        long more = credits.listen();
        if (credits.count() > sent) {
            throw end.notProtocol("it had buffers for " + credits.count() + " messages, of " + sent);
        }
        return more;
    }

    /** Waits for credits no more. */
    void cancel() {
        credits.cancel();
    }

    /** Whether UCX has no request; those that are over are freed. */
    boolean isIdle() {
        return end.areOver(requests) & credits.isIdle();
    }
}
