package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.ReduceOp;

/**
 * {@code MILLRACE_CHECK} in a group: if a bit changes on a network, the group fails, and the message names the step.
 */
class PayloadCheckTest extends EngineFixture {

    private static final long COUNT = 1 << 16;

    private static void allReduce(Communicator communicator) {
        try (DeviceStream stream = communicator.device().newStream()) {
            MemorySegment data = communicator.device().allocate(8 * COUNT, Arena.ofAuto());
            communicator.allReduce(data, data, COUNT, DataType.INT64, ReduceOp.SUM, stream);
            stream.synchronize(TIMEOUT);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"socket", "shm"})
    void aBitThatChangesOnTheNetworkFailsTheGroup(String network) throws Exception {
        Map<String, String> settings = EngineGroup.settings("NCCL_BUFFSIZE", "32K", "MILLRACE_NET", network,
                "NCCL_SHM_DISABLE", "1", "NCCL_P2P_DISABLE", "1", "MILLRACE_CHECK", "1");
        List<Throwable> right = EngineGroup.thrown(directory, 2, settings, PayloadCheckTest::allReduce);
        assertNull(right.get(0), String.valueOf(right));
        assertNull(right.get(1), String.valueOf(right));
        Map<String, String> faulty = new HashMap<>(settings);
        faulty.put("MILLRACE_FAULT", "flip:frame=5,bit=17");
        Path second = Files.createDirectory(directory.resolve("second"));
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            try (Communicator communicator = EngineGroup.join(second, rank, 2, rank == 0 ? faulty : settings)) {
                allReduce(communicator);
            }
            return null;
        });
        String text = String.valueOf(thrown.get(1));
        assertTrue(text.contains("rank 1 <- rank 0, channel 0, step ") && text.contains("all_reduce of 65536 int64")
                && text.contains("differs from the payload that was sent"), thrown.toString());
    }
}
