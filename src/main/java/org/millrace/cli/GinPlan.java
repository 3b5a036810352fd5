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

    CudaGinPlan onGpus(Duration deadline) {
        boolean all = pattern == GinPattern.ALLTOALL;
        int parts = all ? ranks : 1;
        return new CudaGinPlan(all, ranks, contexts,
                sizes().stream().map(bytes -> new CudaGinPlan.Case(bytes, iterations(bytes * parts))).toList(),
                deadline);
    }

    Map<String, Object> json() {
        return Json.object("pattern", pattern.toString(), "ranks", ranks, "contexts", contexts, "descriptors",
                format.name());
    }

    int iterations(long bytes) {
        return (int) Math.max(1, Math.min(iterations, VOLUME / Math.max(1, bytes)));
    }
}
