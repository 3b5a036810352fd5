package org.millrace.net.ucx;

import org.millrace.ffi.ucx.ucp_h;

/**
 * The sending side of messages with headers and short payloads. A message contains as many frames as are available and
 * fit. The message is sent only if the receiver has a buffer for it. Callers of all methods must hold the worker's
 * lock.
 */
final class OutgoingMessages {

    private static final int MASK = UcxFormat.BUFFERS - 1;

    private final UcxEnd end;
    private final long tag;
    private final int bufferBytes;
    private final long buffers;
    private final long[] requests = new long[UcxFormat.BUFFERS];
    /** Credits of the receiver: the number of buffers that the receiver has posted again. */
    private final CountMessages credits;
    private long sent;
    /** Length in bytes of the message that is being written. */
    private long filled;

    /**
     * Creates the sending side. No message is in flight.
     *
     * @param tag         UCX tag of the messages
     * @param creditTag   UCX tag of the credits that the receiver sends
     * @param bufferBytes length of each of the receiver's buffers
     */
    OutgoingMessages(UcxEnd end, long tag, long creditTag, int bufferBytes) {
        this.end = end;
        this.tag = tag;
        this.bufferBytes = bufferBytes;
        buffers = end.arena.allocate((long) UcxFormat.BUFFERS * bufferBytes, 64).address();
        credits = CountMessages.receiver(end, creditTag);
    }

    /** Returns whether a payload of this length follows its header in the same message. */
    boolean isInline(long payloadBytes) {
        return UcxFormat.isInline(payloadBytes, bufferBytes);
    }

    /** Returns whether the next message may be written: the receiver and this side have a free buffer for it. */
    boolean hasRoom() {
        int slot = (int) sent & MASK;
        if (sent - credits.count() == UcxFormat.BUFFERS) {
            return false;
        }
        requests[slot] = end.sent(requests[slot]);
        return requests[slot] == 0;
    }

    /** Appends a frame to the message that is being written. Returns false if the frame does not fit. */
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

    void send() {
        requests[(int) sent & MASK] =
                end.begun(ucp_h.ucp_tag_send_nbx(end.endpoint(), buffer(sent), filled, tag, end.eagerSend));
        sent++;
        filled = 0;
    }

    private long buffer(long message) {
        return buffers + (message & MASK) * bufferBytes;
    }

    /** Receives credits. Returns the number of additional messages that these credits allow. */
    long readCredits() {
        long more = credits.listen();
        if (credits.count() > sent) {
            throw end.notProtocol("it had buffers for " + credits.count() + " messages, of " + sent);
        }
        return more;
    }

    void cancel() {
        credits.cancel();
    }

    /** Returns whether UCX has no request of this object. Frees complete requests. */
    boolean isIdle() {
        return end.areOver(requests) & credits.isIdle();
    }
}
