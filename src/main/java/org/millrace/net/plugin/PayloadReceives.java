package org.millrace.net.plugin;

import org.jspecify.annotations.Nullable;
import org.millrace.ffi.plugin.plugin_h;

/**
 * The receives for payloads, which are divided into pieces. If the plugin supports receives with several pieces, pieces
 * are collected and posted as one receive. When the data of a receive has arrived, its length is checked. Afterwards,
 * data in device memory is flushed. Used by one thread.
 *
 * <pre>
 *   finished  ≤  flushing  ≤  arrived  ≤  posted  ≤  finished + {@value PluginComm#MAX_REQUESTS}        receives
 * </pre>
 */
final class PayloadReceives {

    private static final int MAX = PluginComm.MAX_REQUESTS;
    /** Maximum number of pieces in all receives in flight and in the receive that is posted next; a power of two. */
    private static final int PIECES = 256;

    private final RecvComm communicator;
    private final PayloadQueue queue;
    private final int maxRecvs;
    /**
     * Region of each piece. The index in this array and in the next two arrays is the ordinal of the piece modulo
     * {@link #PIECES}.
     */
    private final @Nullable PluginRegion[] regions = new PluginRegion[PIECES];
    private final long[] addresses = new long[PIECES];
    private final long[] lengths = new long[PIECES];
    /**
     * Number of pieces of each receive. The next array contains the request of each receive's flush; 0 if the receive
     * has no flush in flight.
     */
    private final int[] groups = new int[MAX];
    private final long[] flushes = new long[MAX];
    private long staged;
    private long arrivedPieces;
    private long flushing;
    private long flushingPieces;
    private long finished;
    private long finishedPieces;

    PayloadReceives(RecvComm communicator, PayloadQueue queue, int maxRecvs) {
        this.communicator = communicator;
        this.queue = queue;
        this.maxRecvs = Math.min(maxRecvs, PluginDevice.MAX_RECVS);
    }

    private int slot(long receive) {
        return communicator.window.slot(receive);
    }

    /** Returns how many pieces are complete at their destinations. */
    long finishedPieces() {
        return finishedPieces;
    }

    /** Posts receives for the waiting payloads. Returns the number of posted receives. */
    int post() {
        for (int receives = 0;; receives++) {
            while (!queue.isEmpty() && communicator.staged() < maxRecvs) {
                int piece = (int) (staged & PIECES - 1);
                PluginRegion region = queue.region();
                if (!communicator.stage(region, queue.address(), queue.bytes(), queue.tag())) {
                    return receives;
                }
                regions[piece] = region;
                addresses[piece] = queue.address();
                lengths[piece] = queue.bytes();
                staged++;
                queue.advance();
            }
            int pieces = communicator.staged();
            if (pieces == 0 || communicator.window.begun() - finished == MAX || !communicator.post()) {
                return receives;
            }
            groups[slot(communicator.window.begun() - 1)] = pieces;
        }
    }

    /** Tests the receives and flushes in flight, and begins flushes. Returns the number of steps made. */
    int progress() {
        int steps = 0;
        while (communicator.testOldest()) {
            arrived(groups[slot(communicator.window.done() - 1)]);
            steps++;
        }
        // A flush writes its arguments to the arrays in which the next receive is prepared. The flush must therefore
        // wait until that receive was posted.
        while (flushing < communicator.window.done() && (communicator.staged() == 0 || !isOfDevice())) {
            beginFlush();
            steps++;
        }
        while (finished < flushing) {
            int slot = slot(finished);
            if (flushes[slot] != 0 && !communicator.test(flushes[slot])) {
                break;
            }
            finishedPieces += groups[slot];
            finished++;
            steps++;
        }
        return steps;
    }

    private void arrived(int pieces) {
        for (int i = 0; i < pieces; i++) {
            long length = lengths[(int) (arrivedPieces & PIECES - 1)];
            if (communicator.size(i) != length) {
                throw communicator.connection.corrupt("piece " + arrivedPieces + " of the payloads has "
                        + communicator.size(i) + " bytes, and " + length + " are expected");
            }
            arrivedPieces++;
        }
    }

    /** Returns whether the next receive to flush has written to device memory. */
    private boolean isOfDevice() {
        int pieces = groups[slot(flushing)];
        for (int i = 0; i < pieces; i++) {
            PluginRegion region = regions[(int) (flushingPieces + i & PIECES - 1)];
            if (region != null && region.kind() != plugin_h.NCCL_PTR_HOST()) {
                return true;
            }
        }
        return false;
    }

    private void beginFlush() {
        int slot = slot(flushing);
        int pieces = groups[slot];
        int buffers = 0;
        for (int i = 0; i < pieces; i++) {
            int piece = (int) (flushingPieces + i & PIECES - 1);
            PluginRegion region = regions[piece];
            if (region != null && region.kind() != plugin_h.NCCL_PTR_HOST()) {
                communicator.stageFlush(buffers++, region, addresses[piece], lengths[piece]);
            }
            regions[piece] = null;
        }
        flushes[slot] = buffers == 0 ? 0 : communicator.flush(buffers);
        flushingPieces += pieces;
        flushing++;
    }
}
