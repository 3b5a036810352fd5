package org.millrace.plugin.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.gin.GinException;
import org.millrace.gin.Window;
import org.millrace.plugin.host.CapturedLog;

/**
 * Groups of ranks with shared memory and without. The same bytes arrive in both kinds of groups, and no file remains.
 */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class GinStagingTest {

    private static final int BYTES = GinRankPair.BYTES;

    private static void await(BooleanSupplier condition) {
        while (!condition.getAsBoolean()) {
            Thread.onSpinWait();
        }
    }

    private static long staged() {
        return CapturedLog.lines()
                .stream()
                .filter(line -> line.contains("are staged in memory shared with it"))
                .count();
    }

    @ParameterizedTest
    @CsvSource({"shm, true, true", "socket, true, true", "shm, true, false", "socket, false, false",
            "ucx, true, false"})
    void putsAndGetsArriveWhole(String network, boolean first, boolean second) throws Exception {
        CapturedLog.begin();
        Random random = new Random(11);
        try (GinRankPair ranks = new GinRankPair(network, first, second)) {
            assertEquals(first && second ? 2 : 0, staged(), () -> "" + CapturedLog.lines());
            assertEquals(List.of(), GinRankPair.files(), "both have mapped the memory: its file is gone");
            byte[] bytes = new byte[BYTES / 2 - 64];
            random.nextBytes(bytes);
            MemorySegment.copy(bytes, 0, ranks.memory[0], ValueLayout.JAVA_BYTE, 64, bytes.length);
            GinGroup.Rma[] rma = {ranks.groups[0].createRma(1), ranks.groups[1].createRma(1)};
            Window window = ranks.windows[0];
            rma[0].queues().get(0).putAndSignal(1, window, 64, bytes.length, window, 64, window, 0, 5);
            await(() -> (long) ValueLayout.JAVA_LONG.varHandle().getAcquire(ranks.memory[1], 0L) == 5
                    || ranks.groups[1].communicator().failure() != null);
            ranks.groups[1].communicator().throwIfFailed();
            assertEquals(-1, MemorySegment.mismatch(ranks.memory[1], 64, BYTES / 2, MemorySegment.ofArray(bytes), 0,
                    bytes.length));
            long get = rma[0].queues().get(0).get(1, window, 64, bytes.length, window, BYTES / 2);
            await(() -> rma[0].queues().get(0).isDone(1, (int) get)
                    || ranks.groups[0].communicator().failure() != null);
            ranks.groups[0].communicator().throwIfFailed();
            assertEquals(-1, MemorySegment.mismatch(ranks.memory[0], BYTES / 2, BYTES - 64,
                    MemorySegment.ofArray(bytes), 0, bytes.length));
        }
        assertEquals(List.of(), GinRankPair.files());
    }

    @Test
    void aRankThatFailsWhileBytesAreStagedIsNamed() throws Exception {
        CapturedLog.begin();
        try (GinRankPair ranks = new GinRankPair("shm", true, true)) {
            assertEquals(2, staged());
            GinGroup.Rma rma = ranks.groups[0].createRma(1);
            Window window = ranks.windows[0];
            for (int i = 0; i < 50; i++) {
                rma.queues().get(0).put(1, window, 0, BYTES, window, 0);
            }
            ranks.groups[1].communicator().fail(new GinException("rank 1 was killed by the test"));
            await(() -> ranks.groups[0].communicator().failure() != null);
            Throwable failure = ranks.groups[0].communicator().failure();
            assertNotNull(failure);
            // over shared memory, the rank may detect rank 1's close before it reads the message with the reason
            assertTrue(
                    failure.getMessage().matches("(?s)rank 0( lost rank 1|: rank 1 has closed its end).*descriptor.*"),
                    failure.getMessage());
        }
        assertEquals(List.of(), GinRankPair.files());
    }
}
