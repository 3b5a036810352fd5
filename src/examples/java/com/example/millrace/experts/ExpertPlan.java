package com.example.millrace.experts;

/**
 * What is exchanged: which tokens there are, and where each goes. All of it follows from the seed, so that every rank
 * knows what it must receive.
 *
 * @param channels how many channels the tokens of a rank are divided among
 * @param slots    tokens of a circular buffer
 * @param experts  how many different ranks a token goes to
 * @param words    8-byte words of a token
 * @param seed     of routing and content
 */
public record ExpertPlan(int ranks, int channels, int slots, int tokens, int experts, int words, long seed) {

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of range
     */
    public ExpertPlan {
        if (ranks < 1 || channels < 1 || slots < 1 || tokens < 0 || words < 1 || experts < 1 || experts > ranks) {
            throw new IllegalArgumentException("an exchange of " + tokens + " tokens of " + words + " words to "
                    + experts + " of " + ranks + " ranks, over " + channels + " channels of " + slots
                    + " slots: all but the tokens must be 1 or more, and no token goes to more ranks than there are");
        }
    }

    /** The finalizer of SplitMix64: every bit of the result depends on every bit of the argument. */
    private static long mix(long value) {
        long mixed = (value ^ value >>> 30) * 0xbf58476d1ce4e5b9L;
        mixed = (mixed ^ mixed >>> 27) * 0x94d049bb133111ebL;
        return mixed ^ mixed >>> 31;
    }

    private long hash(long batch, int rank, int token, int what) {
        return mix(mix(mix(seed + batch * 0x9e3779b97f4a7c15L) + ((long) rank << Integer.SIZE | token)) + what);
    }

    /**
     * Whether a token goes to a rank: the ranks are passed in turn, each taken with the probability that makes the
     * number come out.
     */
    public boolean goesTo(long batch, int rank, int token, int to) {
        int wanted = experts;
        for (int candidate = 0; candidate < ranks; candidate++) {
            boolean taken =
                    Long.remainderUnsigned(hash(batch, rank, token, -1 - candidate), ranks - candidate) < wanted;
            if (candidate == to) {
                return taken;
            }
            wanted -= taken ? 1 : 0;
        }
        throw new IndexOutOfBoundsException("rank " + to + " of " + ranks);
    }

    /** The ranks that a token goes to, a bit for each. At most 64 ranks. */
    long destinations(long batch, int rank, int token) {
        int wanted = experts;
        long all = 0;
        for (int candidate = 0; candidate < ranks; candidate++) {
            if (Long.remainderUnsigned(hash(batch, rank, token, -1 - candidate), ranks - candidate) < wanted) {
                all |= 1L << candidate;
                wanted--;
            }
        }
        return all;
    }

    /** A word of a token. */
    public long word(long batch, int rank, int token, int word) {
        return hash(batch, rank, token, word);
    }

    /** What an expert makes of a word. */
    public static long expert(int rank, long word) {
        return word * (2L * rank + 3) + rank;
    }

    int firstToken(int channel) {
        return (int) ((long) tokens * channel / channels);
    }

    /** The next token of a channel, from one on, that goes to a rank; the channel's end if there is none. */
    int nextToken(long batch, int rank, int channel, int to, int from) {
        int end = firstToken(channel + 1);
        int token = from;
        while (token < end && !goesTo(batch, rank, token, to)) {
            token++;
        }
        return token;
    }

    int countTokens(long batch, int rank, int channel, int to) {
        int count = 0;
        int end = firstToken(channel + 1);
        for (int token = nextToken(batch, rank, channel, to, firstToken(channel)); token < end; token =
                nextToken(batch, rank, channel, to, token + 1)) {
            count++;
        }
        return count;
    }

    long tokenBytes() {
        return (long) words * Long.BYTES;
    }
}
