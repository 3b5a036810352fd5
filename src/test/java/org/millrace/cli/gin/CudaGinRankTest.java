package org.millrace.cli.gin;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.OptionalInt;
import org.junit.jupiter.api.Test;
import org.millrace.gin.GinServed;

class CudaGinRankTest {

    private static String note(String named, OptionalInt nccl, OptionalInt ours) {
        return CudaGinRank.note(new GinServed(1, 2, 3, 4, 5, 0, 0), named, nccl, ours);
    }

    @Test
    void threadsAreOnlySpokenOfWhereTheyCanBeTold() {
        String told = note("1", OptionalInt.of(0), OptionalInt.of(1));
        assertTrue(told.startsWith("descriptors served by Java: 15 (")
                && told.endsWith("; GIN progress threads of NCCL: 0, of Millrace: 1"), told);
        String unnamed = note(null, OptionalInt.of(0), OptionalInt.of(1));
        assertTrue(unnamed.endsWith("; NCCL's threads have no names without NCCL_SET_THREAD_NAME=1"), unnamed);
        String unreadable = note("1", OptionalInt.empty(), OptionalInt.empty());
        assertTrue(unreadable.endsWith("; the names of threads cannot be read here"), unreadable);
    }
}
