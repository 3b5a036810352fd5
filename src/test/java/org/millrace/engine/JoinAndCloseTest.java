package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.ReduceOp;

/** A program that repeatedly joins and closes keeps no thread and no descriptor of closed communicators. */
class JoinAndCloseTest {

    private static final int FIRST = 3;
    private static final int MORE = 12;

    @TempDir
    Path directory;

    private void joinAndClose(int times) throws Exception {
        Map<String, String> settings = EngineGroup.settings("NCCL_P2P_DISABLE", "1", "NCCL_BUFFSIZE", "32K");
        for (int i = 0; i < times; i++) {
            EngineGroup.ranks(directory, 2, settings, communicator -> {
                try (DeviceStream stream = communicator.device().newStream(); Arena arena = Arena.ofShared()) {
                    MemorySegment data = communicator.device().allocate(64, arena);
                    communicator.allReduce(data, data, 16, DataType.INT32, ReduceOp.SUM, stream);
                    stream.synchronize(Duration.ofSeconds(EngineGroup.TIMEOUT_SECONDS));
                }
            });
        }
    }

    private static int descriptors() {
        return new File("/proc/self/fd").list().length;
    }

    @Test
    void nothingIsKept() throws Exception {
        joinAndClose(FIRST);
        int before = descriptors();
        joinAndClose(MORE);
        int kept = descriptors() - before;
        assertTrue(kept < MORE, MORE + " joins and closes keep " + kept + " descriptors");
        assertEquals(List.of(), EngineGroup.threadsAlive());
    }
}
