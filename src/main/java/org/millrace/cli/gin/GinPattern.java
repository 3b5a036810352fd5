package org.millrace.cli.gin;

import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import org.millrace.cli.console.ResultTable;
import org.millrace.cli.gin.cuda.CudaGinPlan;
import org.millrace.engine.GinRank;

/** What is measured. */
enum GinPattern {
    /** Rank 0 puts with a signal, rank 1 answers with the same. */
    PUT {
        @Override
        void run(GinPlan plan, GinRank rank, Arena arena, ResultTable table) {
            new PingPong(plan, rank, arena, table, true).run();
        }
    },
    /** Rank 0 signals, rank 1 answers. */
    SIGNAL {
        @Override
        void run(GinPlan plan, GinRank rank, Arena arena, ResultTable table) {
            new PingPong(plan, rank, arena, table, false).run();
        }
    },
    /** Every rank puts a part to each rank. */
    ALLTOALL {
        @Override
        void run(GinPlan plan, GinRank rank, Arena arena, ResultTable table) {
            new AllToAll(plan, rank, arena, table).run();
        }
    },
    /** Many blocks put at once. */
    FLOOD {
        @Override
        void run(GinPlan plan, GinRank rank, Arena arena, ResultTable table) {
            new Flood(plan, rank, arena, table).run();
        }
    },
    /** Tokens go to the ranks of their experts and come back, as in DeepEP. */
    DISPATCH {
        @Override
        void run(GinPlan plan, GinRank rank, Arena arena, ResultTable table) {
            new Dispatch(plan, rank, arena, table).run();
        }
    };

    /** The kernels that do the same on GPUs; empty if there are none. */
    Optional<CudaGinPlan.Pattern> onGpus() {
        return Arrays.stream(CudaGinPlan.Pattern.values()).filter(pattern -> pattern.name().equals(name())).findFirst();
    }

    /** Runs one rank's part; rank 0 prints. */
    abstract void run(GinPlan plan, GinRank rank, Arena arena, ResultTable table);

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
