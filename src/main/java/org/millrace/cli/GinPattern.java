package org.millrace.cli;

import java.lang.foreign.Arena;
import java.util.Locale;
import org.millrace.engine.GinRank;

/** What is measured. */
enum GinPattern {
    /** Rank 0 puts with a signal, rank 1 answers with the same. */
    PUT,
    /** Rank 0 signals, rank 1 answers. */
    SIGNAL,
    /** Every rank puts a part to each rank. */
    ALLTOALL,
    /** Many blocks put at once. */
    FLOOD;

    /** Runs one rank's part; rank 0 prints. */
    void run(GinPlan plan, GinRank rank, Arena arena, ResultTable table) {
        switch (this) {
            case PUT, SIGNAL -> new PingPong(plan, rank, arena, table).run();
            case ALLTOALL -> new AllToAll(plan, rank, arena, table).run();
            case FLOOD -> new Flood(plan, rank, arena, table).run();
        }
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
