package org.millrace.cli.gin;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.cli.base.Json;

/** Plan of a measurement of GIN, derived from the options of the command. */
record GinPlan(GinPattern pattern, int ranks, long minBytes, long maxBytes, int iterations, int contexts, int blocks,
        GinDescriptorFormat format) {

    /** Maximum number of bytes to transfer for each size. It limits the number of rounds of large sizes. */
    private static final long VOLUME = 1L << 28;

    /** Returns the sizes of the puts in bytes, in ascending order; 0 stands for a signal without data. */
    List<Long> sizes() {
        if (pattern == GinPattern.SIGNAL) {
            return List.of(0L);
        }
        List<Long> sizes = new ArrayList<>();
        for (long bytes = minBytes; bytes <= maxBytes; bytes = Math.max(1, bytes * 2)) {
            sizes.add(bytes);
        }
        return sizes;
    }

    OnGpus onGpus(Duration deadline) {
        boolean all = pattern == GinPattern.ALLTOALL;
        int parts = all ? ranks : 1;
        return new OnGpus(all, ranks, contexts,
                sizes().stream().map(bytes -> new OnGpus.Case(bytes, iterations(bytes * parts))).toList(), deadline);
    }

    Map<String, Object> json() {
        return Json.object("pattern", pattern.toString(), "ranks", ranks, "contexts", contexts, "descriptors",
                format.name());
    }

    int iterations(long bytes) {
        return (int) Math.max(1, Math.min(iterations, VOLUME / Math.max(1, bytes)));
    }

    /**
     * Plan of a measurement on GPUs.
     *
     * @param all      whether every rank puts a part to each rank; otherwise ranks 0 and 1 take turns to put or signal
     * @param ranks    number of ranks
     * @param contexts number of GIN contexts to request
     * @param cases    lines of the table, from the first to the last
     * @param deadline time limit of the whole measurement
     */
    record OnGpus(boolean all, int ranks, int contexts, List<Case> cases, Duration deadline) {

        /**
         * A line of the table.
         *
         * @param bytes      size of a put; 0 for signals without data
         * @param iterations number of timed rounds
         */
        public record Case(long bytes, int iterations) {
        }

        /** Returns the size of the largest put, at least 1 byte. */
        long largest() {
            return Math.max(1, cases.stream().mapToLong(Case::bytes).max().orElse(1));
        }
    }
}
