package org.millrace.net.ucx;

import org.millrace.ffi.ucx.ucp_h;

/**
 * A growing count that one end sends to the other in messages of one word, for instance a count of credits. Callers of
 * all methods must hold the worker's lock, see {@link UcxWorker}.
 */
final class CountMessages {

    private static final int CELLS = UcxFormat.CREDITS;

    private final UcxEnd end;
    private final long tag;
    private final long cells;
    private final long[] requests = new long[CELLS];
    private int next;
    private long count;

    private CountMessages(UcxEnd end, long tag) {
        this.end = end;
        this.tag = tag;
        cells = end.arena.allocate((long) CELLS * Long.BYTES, Long.BYTES).address();
    }

    static CountMessages sender(UcxEnd end, long tag) {
        return new CountMessages(end, tag);
    }

    static CountMessages receiver(UcxEnd end, long tag) {
        CountMessages receiver = new CountMessages(end, tag);
        for (int cell = 0; cell < CELLS; cell++) {
            receiver.await(cell);
        }
        return receiver;
    }

    private void await(int cell) {
        requests[cell] = end.receive(cell(cell), Long.BYTES, tag, end.plainReceive);
    }

    private long cell(int number) {
        return cells + (long) number * Long.BYTES;
    }

    /** Returns the newest count that was sent or received. */
    long count() {
        return count;
    }

    /**
     * Sends a greater count. Does nothing if the maximum number of counts is in flight; the caller then calls again.
     */
    void tell(long greater) {
        requests[next] = end.sent(requests[next]);
        if (requests[next] == 0) {
            UcxFormat.word(cell(next), greater);
            requests[next] =
                    end.begun(ucp_h.ucp_tag_send_nbx(end.endpoint(), cell(next), Long.BYTES, tag, end.plainSend));
            count = greater;
            next = (next + 1) % CELLS;
        }
    }

    /** Receives the counts that have arrived. Returns the increase of the count. */
    long listen() {
        long before = count;
        long bytes = end.received(requests[next]);
        while (bytes == Long.BYTES) {
            long says = UcxFormat.word(cell(next));
            if (says < count) {
                throw end.notProtocol("it counts from " + count + " to " + says);
            }
            count = says;
            await(next);
            next = (next + 1) % CELLS;
            bytes = end.received(requests[next]);
        }
        // The receive has failed, or the message has another length than a count.
        if (bytes != UcxEnd.UNDER_WAY) {
            requests[next] = UcxEnd.FAILED;
        }
        return count - before;
    }

    /** Cancels the receives that have not completed. */
    void cancel() {
        for (long request : requests) {
            end.cancel(request);
        }
    }

    /** Returns whether this object has no request in UCX. Frees complete requests. */
    boolean isIdle() {
        return end.areOver(requests);
    }
}
