package org.millrace.net.ucx.frames;

import org.millrace.ffi.ucx.ucp_h;

/**
 * Messages with headers and short payloads on their way: written here, as many frames in one as there are, and sent
 * while the receiver has buffers for them. With the worker's turn, all of it.
 */
final class OutgoingMessages {

    private static final int MASK = UcxFormat.BUFFERS - 1;
    private static final int CREDITS = UcxFormat.CREDITS;

    private final UcxEnd end;
    private final long tag;
    private final long creditTag;
    private final int bufferBytes;
    private final long buffers;
    private final long credits;
    private final long[] requests = new long[UcxFormat.BUFFERS];
    private final long[] creditRequests = new long[CREDITS];
    private int nextCredit;
    private long sent;
    /** For how many the receiver has had buffers that wait again. */
    private long credited;
    /** Length of the message that is being written. */
    private long filled;

    /** No message yet, to a receiver with buffers of a length, which tells of them with a tag. */
    OutgoingMessages(UcxEnd end, long tag, long creditTag, int bufferBytes) {
        this.end = end;
        this.tag = tag;
        this.creditTag = creditTag;
        this.bufferBytes = bufferBytes;
        buffers = end.arena.allocate((long) UcxFormat.BUFFERS * bufferBytes, 64).address();
        credits = end.arena.allocate((long) CREDITS * UcxFormat.CREDIT_BYTES, Long.BYTES).address();
        for (int cell = 0; cell < CREDITS; cell++) {
            awaitCredit(cell);
        }
    }

    /** Whether a payload goes with its header. */
    boolean isInline(long payloadBytes) {
        return UcxFormat.isInline(payloadBytes, bufferBytes);
    }

    /** Whether a message may be written. */
    boolean hasRoom() {
        int slot = (int) sent & MASK;
        if (sent - credited == UcxFormat.BUFFERS) {
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
    int readCredits() {
        int read = 0;
        long bytes = end.received(creditRequests[nextCredit]);
        while (bytes == UcxFormat.CREDIT_BYTES) {
            long says = UcxFormat.word(credits + (long) nextCredit * UcxFormat.CREDIT_BYTES);
            if (says < credited || says > sent) {
                throw end.notProtocol("it says that it had buffers for " + says + " messages, of " + sent);
            }
            credited = says;
            awaitCredit(nextCredit);
            nextCredit = (nextCredit + 1) % CREDITS;
            read++;
            bytes = end.received(creditRequests[nextCredit]);
        }
        if (bytes != UcxEnd.UNDER_WAY) { // failed, or of another length
            creditRequests[nextCredit] = UcxEnd.FAILED;
        }
        return read;
    }

    private void awaitCredit(int cell) {
        creditRequests[cell] = end.receive(credits + (long) cell * UcxFormat.CREDIT_BYTES, UcxFormat.CREDIT_BYTES,
                creditTag, end.plainReceive);
    }

    /** Waits for credits no more. */
    void cancel() {
        for (long request : creditRequests) {
            end.cancel(request);
        }
    }

    /** Whether UCX has no request; those that are over are freed. */
    boolean isIdle() {
        return end.areOver(requests) & end.areOver(creditRequests);
    }
}
