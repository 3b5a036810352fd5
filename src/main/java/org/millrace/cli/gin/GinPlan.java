package org.millrace.cli.gin;

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

    Map<String, Object> json() {
        return Json.object("pattern", pattern.toString(), "ranks", ranks, "contexts", contexts, "descriptors",
                format.name());
    }

    int iterations(long bytes) {
        return (int) Math.max(1, Math.min(iterations, VOLUME / Math.max(1, bytes)));
    }
}
