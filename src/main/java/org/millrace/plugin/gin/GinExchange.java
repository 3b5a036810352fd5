package org.millrace.plugin.gin;

import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.millrace.cuda.ForeignMemory;
import org.millrace.gin.GinException;
import org.millrace.gin.agent.GinMesh;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.PeerClosedException;

/**
 * What the ranks of a group tell each other when they register memory and make contexts, over connections of their own.
 * One thread at a time; every call is collective.
 */
final class GinExchange implements AutoCloseable {

    private static final long POLL_NANOS = 20_000;
    private static final long NO_TICKET = -1;
    /** How many words a rank tells another at once: a header's, less the step's number. */
    static final int WORDS = FrameHeader.WORDS - 1;

    /**
     * A rank's part of a window.
     *
     * @param ticket for peers that would map it; null for none
     */
    record Offer(long bytes, ForeignMemory.@Nullable Ticket ticket) {
    }

    private final int rank;
    private final GinMesh mesh;
    private final Duration deadline;
    private final FrameHeader header = new FrameHeader();
    private long calls;

    GinExchange(int rank, GinMesh mesh, Duration deadline) {
        this.rank = rank;
        this.mesh = mesh;
        this.deadline = deadline;
    }

    /** Tells all ranks of this rank's part of a window, and hears of theirs. */
    Offer[] exchange(Offer mine) {
        ForeignMemory.Ticket ticket = mine.ticket();
        long[] words =
                {mine.bytes(), ticket == null ? NO_TICKET : ticket.process(), ticket == null ? 0 : ticket.allocated(),
                        ticket == null ? 0 : ticket.offset(), ticket == null ? 0 : ticket.descriptor()};
        long[][] toAll = new long[mesh.senders().length][];
        Arrays.fill(toAll, words);
        long[][] heard = exchange(toAll);
        Offer[] all = new Offer[toAll.length];
        for (int peer = 0; peer < all.length; peer++) {
            long[] theirs = heard[peer];
            all[peer] = peer == rank ? mine
                    : new Offer(theirs[0], theirs[1] == NO_TICKET ? null
                            : new ForeignMemory.Ticket(theirs[1], (int) theirs[4], theirs[2], theirs[3]));
        }
        return all;
    }

    /**
     * Tells each rank something, and hears what it has to say.
     *
     * @param mine {@value #WORDS} words for each rank, that for this one is not used
     * @return as many of each; null of this one
     */
    long[][] exchange(long[][] mine) {
        int ranks = mine.length;
        long[][] theirs = new long[ranks][];
        boolean[] told = new boolean[ranks];
        long end = System.nanoTime() + deadline.toNanos();
        while (!step(mine, theirs, told)) {
            if (end - System.nanoTime() < 0) {
                throw new GinException("rank " + rank + ": rank " + missing(theirs)
                        + " did not register its part of a window, or make its contexts, within " + deadline.toMillis()
                        + " ms");
            }
            LockSupport.parkNanos(POLL_NANOS);
        }
        calls++;
        return theirs;
    }

    private boolean step(long[][] mine, long[][] theirs, boolean[] told) {
        boolean complete = true;
        for (int peer = 0; peer < mine.length; peer++) {
            if (peer != rank) {
                try {
                    told[peer] = told[peer] || tell(peer, mine[peer]);
                    flush(peer);
                    theirs[peer] = theirs[peer] == null ? receive(peer) : theirs[peer];
                } catch (ConnectionException lost) {
                    throw new GinException("rank " + rank + " lost rank " + peer + " at step " + calls
                            + " of its windows and contexts: " + lost.getMessage(), lost);
                }
                complete &= told[peer] && theirs[peer] != null;
            }
        }
        return complete;
    }

    private void flush(int peer) {
        try {
            mesh.senders()[peer].progress();
        } catch (PeerClosedException leaving) {
            // what it told before it left is still to be received
        }
    }

    private boolean tell(int peer, long[] words) {
        header.word(0, calls);
        for (int i = 0; i < WORDS; i++) {
            header.word(i + 1, words[i]);
        }
        return mesh.senders()[peer].offer(header, null, 0);
    }

    private long @Nullable [] receive(int peer) {
        FrameReceiver receiver = mesh.receivers()[peer];
        receiver.progress();
        FrameHeader heard = receiver.poll();
        if (heard == null) {
            return null;
        }
        if (heard.word(0) != calls || heard.payloadBytes() != 0) {
            throw new GinException("rank " + rank + ": rank " + peer + " is at step " + heard.word(0)
                    + " of its windows and contexts," + " this rank at step " + calls
                    + ": all ranks register the same windows and make the same contexts in the same order");
        }
        long[] words = new long[WORDS];
        for (int i = 0; i < WORDS; i++) {
            words[i] = heard.word(i + 1);
        }
        receiver.accept(null, 0);
        return words;
    }

    private String missing(long[][] all) {
        StringBuilder text = new StringBuilder();
        for (int peer = 0; peer < all.length; peer++) {
            if (peer != rank && all[peer] == null) {
                text.append(text.isEmpty() ? "" : ", ").append(peer);
            }
        }
        return text.toString();
    }

    @Override
    public void close() {
        mesh.close();
    }
}
