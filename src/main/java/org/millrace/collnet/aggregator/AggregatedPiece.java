package org.millrace.collnet.aggregator;

/** A piece that some rank has begun to give to an aggregator: what is to be done, and how far it has come. */
final class AggregatedPiece {

    private final long base;
    long what;
    long bytes;
    long offset;
    long bytesPerRank;
    /** The rank that said first what is to be done; -1 while nobody has. */
    int first = -1;
    int arrivals;
    boolean combined;
    int resultsOffered;
    /** Behind the piece's result to each rank: how many frames that rank has been offered. */
    final long[] offeredUpTo;

    /** @param base where its place in scratch memory begins, which has room for a contribution of each rank */
    AggregatedPiece(long base, int ranks) {
        this.base = base;
        offeredUpTo = new long[ranks];
    }

    long at(int rank) {
        return base + rank * AggregatorFrame.LONGEST_PIECE;
    }

    /** For the next piece that has this place. */
    void clear() {
        first = -1;
        arrivals = 0;
        combined = false;
        resultsOffered = 0;
    }
}
