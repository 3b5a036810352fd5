package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.DataType;
import org.millrace.ReduceOp;

/** Ranks of one process, as far from each other as the link says: nothing is quicker, and all is right. */
@Timeout(120)
class LinkedRanksTest {

    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final int COUNT = 1 << 20;
    private static final long DELAY = Duration.ofMillis(20).toNanos();
    /** An all-reduce of two ranks sends as many bytes as it has, each way. */
    private static final long ON_THE_LINE = COUNT * 4L * Byte.SIZE * 1_000_000_000L / 400_000_000L;

    @TempDir
    Path directory;

    @ParameterizedTest
    @ValueSource(strings = {"auto", "socket"})
    void nothingIsQuickerThanTheLink(String network) throws Exception {
        Map<String, String> settings =
                EngineGroup.settings("MILLRACE_NET", network, "MILLRACE_LINK", "rate=400Mbit,delay=20ms");
        EngineGroup.ranks(directory, 2, settings, (communicator, stream, arena) -> {
            MemorySegment data = communicator.device().allocate(COUNT * 4L, arena);
            for (int count : new int[] {1, COUNT, 1}) {
                for (int i = 0; i < count; i++) {
                    data.setAtIndex(ValueLayout.JAVA_INT, i, i + communicator.rank());
                }
                communicator.barrier();
                long began = System.nanoTime();
                communicator.allReduce(data, data, count, DataType.INT32, ReduceOp.SUM, stream);
                stream.synchronize(PATIENCE);
                long took = System.nanoTime() - began;
                // what a rank waits for was sent after the other one had begun, and the barrier took a delay from there
                assertTrue(count == 1 || took > ON_THE_LINE, count + " elements took " + took + " ns");
                for (int i = 0; i < count; i++) {
                    assertEquals(2 * i + 1, data.getAtIndex(ValueLayout.JAVA_INT, i));
                }
            }
            long began = System.nanoTime();
            for (int i = 0; i < 10; i++) {
                communicator.barrier();
            }
            assertTrue(System.nanoTime() - began >= 9 * DELAY, "each barrier waits for the other rank's word");
            assertFalse(communicator.route().orElseThrow().transports().contains("P2P"), "shared memory passes it by");
        });
    }
}
