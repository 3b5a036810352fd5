package org.millrace.cli.gin;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.millrace.abi.GinDescriptorFormat;
import org.millrace.cli.gin.cuda.CudaGinPlan;

/** What ranks do: the options of the command, decided. */
record GinPlan(int ranks, long minBytes, long maxBytes, int iterations, int contexts, int communicators, int channels,
        long tokens, int batch, int experts, int blocks, int tokenWords, int ranksPerHost, boolean lowLatency,
        GinDescriptorFormat format, long seed) {

    /** Bytes that a size is worth of iterations: large ones are repeated less often. */
    private static final long VOLUME = 1L << 28;

    List<Long> sizes() {
        List<Long> sizes = new ArrayList<>();
        for (long bytes = minBytes; bytes <= maxBytes; bytes = Math.max(1, bytes * 2)) {
            sizes.add(bytes);
        }
        return sizes;
    }

    /** What ranks on GPUs do. */
    CudaGinPlan onGpus(CudaGinPlan.Pattern pattern, Duration deadline) {
        CudaGinPlan.Tokens dispatched =
                new CudaGinPlan.Tokens(batch, Math.min(experts, ranks), tokenWords, ranksPerHost, lowLatency, seed);
        if (pattern == CudaGinPlan.Pattern.DISPATCH) {
            long perBatch = (long) batch * ranks;
            long batches = (tokens + perBatch - 1) / perBatch;
            return new CudaGinPlan(pattern, ranks, contexts,
                    List.of(new CudaGinPlan.Case((long) tokenWords * Long.BYTES, (int) batches)), dispatched, deadline);
        }
        List<Long> sizes = pattern == CudaGinPlan.Pattern.SIGNAL ? List.of(0L) : sizes();
        int parts = pattern == CudaGinPlan.Pattern.ALLTOALL ? ranks : 1;
        return new CudaGinPlan(pattern, ranks, contexts,
                sizes.stream().map(bytes -> new CudaGinPlan.Case(bytes, iterations(bytes * parts))).toList(),
                dispatched, deadline);
    }

    /** What was asked for, for programs. */
    Map<String, Object> json(GinPattern pattern) {
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("pattern", pattern.toString());
        document.put("ranks", ranks);
        document.put("contexts", contexts);
        document.put("descriptors", format.name());
        document.put("ranks_per_host", ranksPerHost);
        document.put("low_latency", lowLatency);
        document.put("seed", seed);
        return document;
    }

    int iterations(long bytes) {
        return (int) Math.max(1, Math.min(iterations, VOLUME / Math.max(1, bytes)));
    }
}
