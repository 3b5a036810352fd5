package org.millrace.plugin.gin;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.Waiting;
import org.millrace.cuda.driver.ForeignMemory;
import org.millrace.gin.GinException;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.PeerClosedException;
import org.millrace.net.connection.FullMesh;

/**
 * Exchanges messages between the ranks of a group, over connections that serve only these exchanges. The ranks exchange
 * messages to register memory and to create contexts. Every rank must make each call except {@link #keepUp}. One thread
 * at a time may make these calls.
 */
final class GinExchange implements AutoCloseable {

    private static final long POLL_NANOS = 20_000;
    /** Number of words that describe a physical segment of memory: its file descriptor and its size. */
    private static final int SEGMENT_WORDS = 2;
    private static final int SEGMENTS_AT_ONCE = 2;
    /**
     * Number of words that a rank sends to another rank in one message. A frame header has one more word, with the
     * number of the exchange.
     */
    static final int WORDS = FrameHeader.WORDS - 1;

    /**
     * A rank's part of a window.
     *
     * @param tickets tickets for peers that map the part, one for each physical segment of the part; empty if peers
     *                cannot map the part
     */
    record Offer(long bytes, List<ForeignMemory.Ticket> tickets) {
    }

    final int rank;
    final int ranks;
    private final FullMesh mesh;
    private final Duration deadline;
    private final FrameHeader header = new FrameHeader();
    private final ReentrantLock lock = new ReentrantLock();
    private long calls;

    GinExchange(int rank, FullMesh mesh, Duration deadline) {
        this.rank = rank;
        this.ranks = mesh.senders().length;
        this.mesh = mesh;
        this.deadline = deadline;
    }

    /**
     * Exchanges the parts of a window with all ranks. The first message of each rank holds the size of its part and the
     * number of segments. Each further message holds up to two segments. The rank with the most segments determines the
     * number of messages.
     */
    Offer[] exchange(Offer mine) {
        List<ForeignMemory.Ticket> tickets = mine.tickets();
        long[][] heard = tellAll(mine.bytes(), tickets.size(), tickets.isEmpty() ? 0 : tickets.getFirst().process(),
                tickets.isEmpty() ? 0 : tickets.getFirst().offset());
        int most = tickets.size();
        List<List<ForeignMemory.Ticket>> theirs = new ArrayList<>();
        for (int peer = 0; peer < ranks; peer++) {
            most = peer == rank ? most : Math.max(most, checkedCount(peer, heard[peer][1]));
            theirs.add(new ArrayList<>());
        }
        for (int first = 0; first < most; first += SEGMENTS_AT_ONCE) {
            long[][] segments = tellAll(segments(tickets, first));
            for (int peer = 0; peer < ranks; peer++) {
                for (int i = first; peer != rank && i < Math.min(first + SEGMENTS_AT_ONCE, heard[peer][1]); i++) {
                    int word = (i - first) * SEGMENT_WORDS;
                    theirs.get(peer)
                            .add(new ForeignMemory.Ticket(heard[peer][2], (int) segments[peer][word],
                                    segments[peer][word + 1], i == 0 ? heard[peer][3] : 0));
                }
            }
        }
        Offer[] all = new Offer[ranks];
        for (int peer = 0; peer < ranks; peer++) {
            all[peer] = peer == rank ? mine : new Offer(heard[peer][0], theirs.get(peer));
        }
        return all;
    }

    private static long[] segments(List<ForeignMemory.Ticket> tickets, int first) {
        long[] words = new long[WORDS];
        for (int i = first; i < Math.min(first + SEGMENTS_AT_ONCE, tickets.size()); i++) {
            words[(i - first) * SEGMENT_WORDS] = tickets.get(i).descriptor();
            words[(i - first) * SEGMENT_WORDS + 1] = tickets.get(i).allocated();
        }
        return words;
    }

    private int checkedCount(int peer, long count) {
        if (count < 0 || count > ForeignMemory.MAX_SEGMENTS) {
            throw new GinException("rank " + rank + ": rank " + peer + " states that its window has " + count
                    + " physical segments, and at most " + ForeignMemory.MAX_SEGMENTS + " are mapped");
        }
        return (int) count;
    }

    private long[][] tellAll(long... words) {
        long[][] toAll = new long[ranks][];
        Arrays.fill(toAll, Arrays.copyOf(words, WORDS));
        return exchange(toAll);
    }

    /**
     * Sends a message to each rank and receives a message from each rank.
     *
     * @param mine {@value #WORDS} words for each rank; the entry of this rank is ignored
     * @return {@value #WORDS} words from each rank; null for this rank
     */
    long[][] exchange(long[][] mine) {
        lock.lock();
        try {
            return exchangeAlone(mine);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Makes progress so that sent messages arrive. A peer may still wait for a message, if the connection to the peer
     * was cut after the message was sent. Callable from any thread; does not block.
     */
    void keepUp() {
        if (lock.tryLock()) {
            try {
                for (int peer = 0; peer < ranks; peer++) {
                    keepUp(mesh.senders()[peer], mesh.receivers()[peer]);
                }
            } finally {
                lock.unlock();
            }
        }
    }

    private static void keepUp(@Nullable FrameSender sender, @Nullable FrameReceiver receiver) {
        try {
            if (sender != null && receiver != null) {
                sender.progress();
                receiver.progress();
            }
        } catch (ConnectionException lost) {
            // The next exchange reports the lost connection.
        }
    }

    private long[][] exchangeAlone(long[][] mine) {
        long[][] theirs = new long[ranks][];
        boolean[] told = new boolean[ranks];
        long end = System.nanoTime() + deadline.toNanos();
        while (!step(mine, theirs, told)) {
            if (end - System.nanoTime() < 0) {
                throw new GinException("rank " + rank + ": rank " + missing(theirs)
                        + " did not register its part of a window, or make its contexts, within " + deadline.toMillis()
                        + " ms");
            }
            Waiting.pause(POLL_NANOS);
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
            // The peer has closed the connection. Messages that it sent before are still received.
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
