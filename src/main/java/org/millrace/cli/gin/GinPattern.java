package org.millrace.cli.gin;

import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import org.millrace.cli.gin.cuda.CudaGinPlan;
import org.millrace.engine.GinRank;

/** What is measured. */
enum GinPattern {
    /** Rank 0 puts with a signal, rank 1 answers with the same. */
    PUT {
        @Override
        void run(GinPlan plan, GinRank rank, Arena arena, PrintWriter out) {
            new PingPong(plan, rank, arena, out, true).run();
        }
    },
    /** Rank 0 signals, rank 1 answers. */
    SIGNAL {
        @Override
        void run(GinPlan plan, GinRank rank, Arena arena, PrintWriter out) {
            new PingPong(plan, rank, arena, out, false).run();
        }
    },
    /** Every rank puts a part to each rank. */
    ALLTOALL {
        @Override
        void run(GinPlan plan, GinRank rank, Arena arena, PrintWriter out) {
            new AllToAll(plan, rank, arena, out).run();
        }
    },
    /** Many blocks put at once. */
    FLOOD {
        @Override
        void run(GinPlan plan, GinRank rank, Arena arena, PrintWriter out) {
            new Flood(plan, rank, arena, out).run();
        }
    },
    /** Tokens go to the ranks of their experts and come back, as in DeepEP. */
    DISPATCH {
        @Override
        void run(GinPlan plan, GinRank rank, Arena arena, PrintWriter out) {
            new Dispatch(plan, rank, arena, out).run();
        }
    };

    /** The kernels that do the same on GPUs; empty if there are none. */
    Optional<CudaGinPlan.Pattern> onGpus() {
        return Arrays.stream(CudaGinPlan.Pattern.values()).filter(pattern -> pattern.name().equals(name())).findFirst();
    }

    /** Runs one rank's part; rank 0 prints. */
    abstract void run(GinPlan plan, GinRank rank, Arena arena, PrintWriter out);

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
