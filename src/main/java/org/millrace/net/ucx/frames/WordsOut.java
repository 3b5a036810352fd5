package org.millrace.net.ucx.frames;

import org.millrace.ffi.ucx.ucp_h;

/** A count that grows, told to the peer in messages of one word. With the worker's turn, all of it. */
final class WordsOut {

    private static final int CELLS = UcxFormat.CREDITS;

    private final UcxEnd end;
    private final long tag;
    private final long cells;
    private final long[] requests = new long[CELLS];
    private int next;
    private long told;

    WordsOut(UcxEnd end, long tag) {
        this.end = end;
        this.tag = tag;
        cells = end.arena.allocate((long) CELLS * Long.BYTES, Long.BYTES).address();
    }

    /** The count that was told last. */
    long told() {
        return told;
    }

    /** Tells a greater count, unless all that were told before are still under way. */
    void tell(long count) {
        requests[next] = end.sent(requests[next]);
        if (requests[next] == 0) {
            long cell = cells + (long) next * Long.BYTES;
            UcxFormat.word(cell, count);
            requests[next] = end.begun(ucp_h.ucp_tag_send_nbx(end.endpoint(), cell, Long.BYTES, tag, end.plainSend));
            told = count;
            next = (next + 1) % CELLS;
        }
    }

    /** Whether UCX has no request; those that are over are freed. */
    boolean isIdle() {
        return end.areOver(requests);
    }

    /** The peer's side. */
    static final class Heard {

        private final UcxEnd end;
        private final long tag;
        private final long cells;
        private final long[] requests = new long[CELLS];
        private int next;
        private long count;

        /** Waits for the first. */
        Heard(UcxEnd end, long tag) {
            this.end = end;
            this.tag = tag;
            cells = end.arena.allocate((long) CELLS * Long.BYTES, Long.BYTES).address();
            for (int cell = 0; cell < CELLS; cell++) {
                await(cell);
            }
        }

        private void await(int cell) {
            requests[cell] = end.receive(cells + (long) cell * Long.BYTES, Long.BYTES, tag, end.plainReceive);
        }

        long count() {
            return count;
        }

        /** Hears what was told; how many more that is. */
        long listen() {
            long before = count;
            long bytes = end.received(requests[next]);
            while (bytes == Long.BYTES) {
                long says = UcxFormat.word(cells + (long) next * Long.BYTES);
                if (says < count) {
                    throw end.notProtocol("it counts from " + count + " to " + says);
                }
                count = says;
                await(next);
                next = (next + 1) % CELLS;
                bytes = end.received(requests[next]);
            }
            if (bytes != UcxEnd.UNDER_WAY) { // failed, or of another length
                requests[next] = UcxEnd.FAILED;
            }
            return count - before;
        }

        /** Waits no more. */
        void cancel() {
            for (long request : requests) {
                end.cancel(request);
            }
        }

        boolean isIdle() {
            return end.areOver(requests);
        }
    }
}
