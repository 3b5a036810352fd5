package org.millrace.net.ucx;

import org.millrace.net.FrameHeader;

/**
 * The receiving side of messages with headers and short payloads. It contains the buffers for these messages. It also
 * contains the position in the current message, from which frames are taken. Some methods state that they require the
 * worker's lock. Only the receiver's thread calls the other methods, which require no lock.
 */
final class IncomingMessages {

    private static final int MASK = UcxFormat.BUFFERS - 1;

    private final UcxEnd end;
    private final long tag;
    private final int bufferBytes;
    private final long buffers;
    private final long[] requests = new long[UcxFormat.BUFFERS];
    private final CountMessages credits;
    /** Number of messages that have arrived, including the current message. */
    private long came;
    /** Number of messages from which all frames were taken. */
    private long taken;
    /**
     * Number of buffers that were posted again. A buffer is posted again after all frames of its message were taken.
     */
    private long returned;
    /**
     * Address of the next frame in the current message. {@link #limit} is the address behind the message's last byte.
     */
    private long at;
    private long limit;

    /**
     * Creates and posts the buffers. The caller must hold the worker's lock.
     *
     * @param tag         UCX tag of the messages
     * @param creditTag   UCX tag of the credits that are sent to the sender
     * @param bufferBytes length of each buffer
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

    /**
     * Reads the next frame's header. Returns false if no frame has arrived. The caller must hold the worker's lock.
     */
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
            throw end.notProtocol("a header with " + (limit - at) + " bytes behind its beginning is not valid");
        }
        return true;
    }

    /** Returns whether a payload of this length follows its header in the same message. */
    boolean isInline(long payloadBytes) {
        return UcxFormat.isInline(payloadBytes, bufferBytes);
    }

    /**
     * Takes the frame whose header was read most recently. If the payload is in the message, copies it to the
     * destination.
     */
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

    /**
     * Posts the buffer of each message again after all frames of the message were taken. Sends credits for the buffers
     * at intervals. The caller must hold the worker's lock.
     */
    void giveBack() {
        while (returned < taken) {
            await((int) returned & MASK);
            returned++;
        }
        if (returned - credits.count() >= UcxFormat.CREDIT_INTERVAL) {
            credits.tell(returned);
        }
    }

    /** Cancels the receives that have not completed. The caller must hold the worker's lock. */
    void cancel() {
        for (long request : requests) {
            end.cancel(request);
        }
    }

    /**
     * Returns whether UCX has no request of this object. Frees complete requests. The caller must hold the worker's
     * lock.
     */
    boolean isIdle() {
        return end.areOver(requests) & credits.isIdle();
    }
}
