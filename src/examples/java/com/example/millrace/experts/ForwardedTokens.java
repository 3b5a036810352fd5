package com.example.millrace.experts;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Tokens of a channel that this rank forwards in a batch. On dispatch, tokens arrive from the ranks of this rank's rail
 * and travel on to near ranks. On combine, the near ranks return results, and this rank sends back each sum when it is
 * complete.
 */
final class ForwardedTokens {

    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

    private final ExpertPlan plan;
    private final LsaRing ring;
    private final int firstToken;
    private final long[][] sums;
    /** Number of near ranks that have not returned their result yet, for each host and token. */
    private final int[][] missing;
    /** Tokens of each host with a complete sum, in the order of completion. */
    private final int[][] complete;
    private final int[] completed;
    private final int[] returned;

    ForwardedTokens(HostedPlan hosted, LsaRing ring, int channel) {
        this.plan = hosted.plan();
        this.ring = ring;
        firstToken = plan.firstToken(channel);
        int tokens = plan.firstToken(channel + 1) - firstToken;
        sums = new long[hosted.hosts()][tokens * plan.words()];
        missing = new int[hosted.hosts()][tokens];
        complete = new int[hosted.hosts()][tokens];
        completed = new int[hosted.hosts()];
        returned = new int[hosted.hosts()];
    }

    /**
     * Stores a token in the rings of those near ranks that are its destinations. Returns false if a ring has no room.
     */
    boolean forward(int host, MemorySegment memory, long offset) {
        long to = memory.get(LONG, offset + Long.BYTES);
        for (int rank = 0; rank < ring.ranks(); rank++) {
            if ((to >>> rank & 1) != 0 && !ring.hasRoom(rank)) {
                return false;
            }
        }
        int token = (int) memory.get(LONG, offset);
        missing[host][token - firstToken] = Long.bitCount(to);
        for (int rank = 0; rank < ring.ranks(); rank++) {
            if ((to >>> rank & 1) != 0) {
                MemorySegment target = ring.memory(rank);
                long slot = ring.slot(rank);
                target.set(LONG, slot, token(host, token));
                MemorySegment.copy(memory, offset + HybridLayout.HEADER_WORDS * LONG.byteSize(), target,
                        slot + HybridLayout.HEADER_WORDS * LONG.byteSize(), plan.tokenBytes());
                ring.publish(rank);
            }
        }
        return true;
    }

    /** Returns the identifier of a token for near ranks. */
    private static long token(int host, int token) {
        return (long) host << Integer.SIZE | token;
    }

    static int host(long name) {
        return (int) (name >>> Integer.SIZE);
    }

    /** Adds a near rank's result. */
    boolean add(MemorySegment memory, long offset) {
        long name = memory.get(LONG, offset);
        int host = host(name);
        int at = (int) name - firstToken;
        for (int word = 0; word < plan.words(); word++) {
            sums[host][at * plan.words() + word] +=
                    memory.get(LONG, offset + (HybridLayout.HEADER_WORDS + word) * LONG.byteSize());
        }
        if (--missing[host][at] == 0) {
            complete[host][completed[host]++] = at;
        }
        return true;
    }

    /** Writes the next complete sum for a host to a slot. Returns false if no sum is complete. */
    boolean writeBack(int host, MemorySegment memory, long offset) {
        if (returned[host] == completed[host]) {
            return false;
        }
        int at = complete[host][returned[host]++];
        memory.set(LONG, offset, at + firstToken);
        MemorySegment.copy(sums[host], at * plan.words(), memory, LONG,
                offset + HybridLayout.HEADER_WORDS * LONG.byteSize(), plan.words());
        return true;
    }
}
