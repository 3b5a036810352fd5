package com.example.millrace.experts;

/**
 * Tokens of an exchange and their destinations. The seed determines both, so every rank knows the tokens that it must
 * receive.
 *
 * @param channels number of channels that share the tokens of a rank
 * @param slots    number of tokens in a circular buffer
 * @param experts  number of different ranks that a token goes to
 * @param words    number of 8-byte words in a token
 * @param seed     seed of routing and content
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

    /** Computes the finalizer of SplitMix64. Every bit of the result depends on every bit of the argument. */
    private static long mix(long value) {
        long mixed = (value ^ value >>> 30) * 0xbf58476d1ce4e5b9L;
        mixed = (mixed ^ mixed >>> 27) * 0x94d049bb133111ebL;
        return mixed ^ mixed >>> 31;
    }

    private long hash(long batch, int rank, int token, int what) {
        return mix(mix(mix(seed + batch * 0x9e3779b97f4a7c15L) + ((long) rank << Integer.SIZE | token)) + what);
    }

    /**
     * Returns whether a token goes to a rank. The ranks are visited in order, and each is selected with a probability
     * such that the required number of ranks is selected in the end.
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

    /** Returns the destination ranks of a token, one bit for each. At most 64 ranks. */
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

    /** Returns a word of a token. */
    public long word(long batch, int rank, int token, int word) {
        return hash(batch, rank, token, word);
    }

    /** Returns an expert's result for a word. */
    public static long expert(int rank, long word) {
        return word * (2L * rank + 3) + rank;
    }

    int firstToken(int channel) {
        return (int) ((long) tokens * channel / channels);
    }

    /**
     * Returns the first token of a channel, from the given one on, that goes to a rank; the channel's end if none does.
     */
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
