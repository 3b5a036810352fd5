package org.millrace.plugin.fallback;

import org.millrace.ffi.plugin.plugin_h;
import org.millrace.plugin.path.ConnectionHandle;

/**
 * Requests of one connection, from their post until NCCL learns that they are complete. Messages of one connection keep
 * their order, so a request is identified by the sequence number of its message. NCCL receives the request's number,
 * which is this sequence number modulo {@link ConnectionHandle#REQUEST_NUMBERS}.
 */
final class RequestRing {

    /** Maximum number of requests that are in flight at the same time. NCCL guarantees this limit. */
    static final int CAPACITY = plugin_h.NCCL_NET_MAX_REQUESTS();

    private final int[] bytes = new int[CAPACITY];
    /** One bit for each slot, 1 while NCCL waits for the slot's request. */
    private int busy;
    private long next;

    boolean hasRoom() {
        return (busy & bit(next)) == 0;
    }

    boolean isIdle() {
        return busy == 0;
    }

    long next() {
        return next;
    }

    /** Begins a request with the given number of bytes. Returns the request's number. */
    int add(int length) {
        bytes[slot(next)] = length;
        busy |= bit(next);
        return (int) (next++ & ConnectionHandle.REQUEST_NUMBERS - 1);
    }

    /**
     * Returns the sequence number of a request in flight. Throws {@link IllegalArgumentException} if the request is not
     * in flight.
     */
    long sequence(int number) {
        long age = next - 1 - number & ConnectionHandle.REQUEST_NUMBERS - 1;
        long sequence = next - 1 - age;
        if (age >= CAPACITY || sequence < 0 || (busy & bit(sequence)) == 0) {
            throw new IllegalArgumentException(
                    "request " + number + " was never begun, or was reported to NCCL as done before");
        }
        return sequence;
    }

    int bytes(long sequence) {
        return bytes[slot(sequence)];
    }

    void setBytes(long sequence, int length) {
        bytes[slot(sequence)] = length;
    }

    void release(long sequence) {
        busy &= ~bit(sequence);
    }

    static int slot(long sequence) {
        return (int) sequence & CAPACITY - 1;
    }

    private static int bit(long sequence) {
        return 1 << slot(sequence);
    }
}
