package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.ReduceOp;

/**
 * Operations over two rails. After the loss of one rail the results are still right. After the loss of both rails the
 * communicator fails.
 */
@Tag("slow")
class EngineRailsTest extends EngineFixture {

    private static final int COUNT = 300_000;
    private static final int OPERATIONS = 8;

    /** @param unpacks whether kernels gather received data from pages that both rails fill */
    private static Map<String, String> settings(String fault, boolean unpacks) {
        return EngineGroup.settings("MILLRACE_NET", "socket", "MILLRACE_SOCKET_ADDRESSES", "127.0.0.1,127.0.0.2",
                "MILLRACE_FAULT", fault, "NCCL_NET_DEVICE_UNPACK_ENABLED", unpacks ? "1" : "0");
    }

    private static void sums(Communicator communicator, boolean unpacks) {
        try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
            MemorySegment from = communicator.device().allocate(8L * COUNT, arena);
            MemorySegment to = communicator.device().allocate(8L * COUNT, arena);
            for (int operation = 0; operation < OPERATIONS; operation++) {
                for (int i = 0; i < COUNT; i++) {
                    from.setAtIndex(ValueLayout.JAVA_LONG, i, (long) i * (communicator.rank() + 1) + operation);
                }
                communicator.allReduce(from, to, COUNT, DataType.INT64, ReduceOp.SUM, stream);
                stream.synchronize(TIMEOUT);
                assertEquals(List.of(unpacks ? "NET socket unpacked" : "NET socket"),
                        communicator.route().orElseThrow().transports());
                for (int i = 0; i < COUNT; i++) {
                    assertEquals(3L * i + 2 * operation, to.getAtIndex(ValueLayout.JAVA_LONG, i),
                            "element " + i + " of operation " + operation);
                }
            }
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"cut:frame=9,rail=1|false", "cut:frame=1,rail=0|false", "cut:frame=20,rail=1|false",
                    "cut:frame=9,rail=1;cut:frame=27,rail=0|false", "cut:frame=9,rail=0;cut:frame=9,rail=1|false",
                    "cut:frame=9,rail=1|true", "cut:frame=9,rail=1;cut:frame=27,rail=0|true"})
    void aRailThatIsCutChangesNoResult(String fault, boolean unpacks) throws Exception {
        for (Throwable failure : EngineGroup.thrown(directory, 2, settings(fault, unpacks),
                communicator -> sums(communicator, unpacks))) {
            assertNull(failure, () -> fault + ": " + failure);
        }
    }

    /**
     * Two rails are cut, one after the other. Between the two cuts the ranks send twice as many frames as can be in
     * flight. The receiver has therefore read all data of the first rail before the second cut.
     */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"cut:frame=9,rail=1;cut:frame=27,rail=0|rail 0|false",
                    "cut:frame=2,rail=0;cut:frame=20,rail=1|rail 1|false",
                    "cut:frame=9,rail=1;cut:frame=27,rail=0|rail 0|true"})
    void theLastRailIsTheConnectionAndEveryRankSaysSo(String faults, String last, boolean unpacks) throws Exception {
        Map<String, String> withoutReconnecting = new HashMap<>(settings(faults, unpacks));
        withoutReconnecting.put("MILLRACE_RECONNECT_DEADLINE", "0s");
        for (Throwable failure : EngineGroup.thrown(directory, 2, withoutReconnecting,
                communicator -> sums(communicator, unpacks))) {
            assertNotNull(failure, faults);
            assertTrue(failure.getMessage().contains("socket connection")
                    && failure.getMessage().contains("connection lost ("), failure.getMessage());
            assertTrue(failure.getMessage().contains("on its last rail, " + last), failure.getMessage());
        }
    }
}
