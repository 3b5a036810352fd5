package org.millrace.cli;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.millrace.abi.GinDescriptorFormat;

/** What ranks do: the options of the command, decided. */
record GinPlan(GinPattern pattern, int ranks, long minBytes, long maxBytes, int iterations, int contexts, int blocks,
        GinDescriptorFormat format) {

    /** Bytes that a size is worth of iterations: large ones are repeated less often. */
    private static final long VOLUME = 1L << 28;

    /** Of the puts, in order; 0 for a signal alone. */
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
     * What the ranks do on GPUs.
     *
     * @param all      whether every rank puts a part to each, or ranks 0 and 1 put or signal in turn
     * @param ranks    how many
     * @param contexts GIN contexts to ask for
     * @param cases    the lines of the table, in order
     * @param deadline how long everything together may take
     */
    record OnGpus(boolean all, int ranks, int contexts, List<Case> cases, Duration deadline) {

        /**
         * A line of the table.
         *
         * @param bytes      of a put; 0 for signals alone
         * @param iterations rounds that are timed
         */
        public record Case(long bytes, int iterations) {
        }

        /** Most bytes of a put, 1 at least. */
        long largest() {
            return Math.max(1, cases.stream().mapToLong(Case::bytes).max().orElse(1));
        }
    }
}
