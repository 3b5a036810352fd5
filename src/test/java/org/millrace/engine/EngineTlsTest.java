package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.RemoteAction;

/** The engine and GIN with all connections under TLS, over one address and over two addresses. */
@Tag("slow")
@Tag("optimized") // only the optimizing compiler uses the processor's instructions for AES-GCM
@Timeout(120)
class EngineTlsTest extends EngineFixture {

    private static Map<String, String> settings(String addresses) {
        return EngineGroup.settings("MILLRACE_NET", "socket", "MILLRACE_TLS", "1", "MILLRACE_SECRET", "of the ranks",
                "MILLRACE_SOCKET_ADDRESSES", addresses);
    }

    @ParameterizedTest
    @ValueSource(strings = {"127.0.0.1", "127.0.0.1,127.0.0.2"})
    void ranksReduceUnderTls(String addresses) throws Exception {
        int count = 300_000;
        EngineGroup.ranks(directory, 2, settings(addresses), (communicator, stream, arena) -> {
            MemorySegment data = communicator.device().allocate(count * 4L, arena);
            for (int i = 0; i < count; i++) {
                data.setAtIndex(ValueLayout.JAVA_INT, i, i + communicator.rank());
            }
            communicator.allReduce(data, data, count, DataType.INT32, ReduceOp.SUM, stream);
            stream.synchronize(TIMEOUT);
            for (int i = 0; i < count; i++) {
                assertEquals(2 * i + 1, data.getAtIndex(ValueLayout.JAVA_INT, i));
            }
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"127.0.0.1", "127.0.0.1,127.0.0.2"})
    void putsAndSignalsUnderTls(String addresses) throws Exception {
        List<Throwable> thrown = EngineGroup.call(2, number -> () -> {
            try (Arena arena = Arena.ofShared();
                    GinRank rank = GinRank.join("file:" + directory.resolve("group"), number, 2, settings(addresses))) {
                GinRank.LocalWindow window = rank.window(arena, 1 << 20);
                var device = rank.device(GinRequirements.of(1, 1, 0));
                HostGin gin = new HostGin(device, 0);
                gin.putValue(device.world(), 1 - number, window.window(), 64, 4711 + number, 8,
                        RemoteAction.increment(0));
                gin.waitSignal(0, 1);
                assertEquals(4712 - number, window.memory().get(ValueLayout.JAVA_LONG, 64));
                rank.barrier();
            }
            return null;
        });
        assertEquals(Arrays.asList(null, null), thrown);
    }
}
