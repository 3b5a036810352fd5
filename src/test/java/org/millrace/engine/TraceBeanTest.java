package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.Stream;
import org.millrace.trace.TraceMXBean;

/** A program's counters in JMX, as any client reads them: types of the platform alone. */
class TraceBeanTest {

    private static final long DEADLINE_NANOS = 30_000_000_000L;

    @TempDir
    Path directory;

    @Test
    void aClientReadsConnectionsAndCommunicators() throws Exception {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        ObjectName name = new ObjectName(TraceMXBean.NAME);
        List<Throwable> thrown =
                EngineGroup.run(directory, 2, EngineGroup.settings("MILLRACE_NET", "shm"), communicator -> {
                    try (Arena arena = Arena.ofShared(); Stream stream = communicator.device().newStream()) {
                        MemorySegment data = communicator.device().allocate(800, arena);
                        for (int i = 0; i < 3; i++) {
                            communicator.allReduce(data, data, 100, DataType.INT64, ReduceOp.SUM, stream);
                        }
                        stream.synchronize(Duration.ofSeconds(EngineGroup.PATIENCE_SECONDS));
                        long deadline = System.nanoTime() + DEADLINE_NANOS;
                        while (!server.isRegistered(name)) {
                            assertTrue(System.nanoTime() < deadline, "it is not registered");
                            Thread.onSpinWait();
                        }
                        assertCounters(server, name, communicator.rank());
                    }
                });
        thrown.forEach(failure -> assertNull(failure));
    }

    private static void assertCounters(MBeanServer server, ObjectName name, int rank) throws Exception {
        CompositeData[] connections = (CompositeData[]) server.getAttribute(name, "Connections");
        assertTrue(
                Arrays.stream(connections)
                        .anyMatch(each -> each.get("rank").equals(rank) && each.get("direction").equals("send")
                                && each.get("network").equals("shm") && (Long) each.get("bytes") > 0),
                () -> Arrays.toString(connections));
        CompositeData[] groups = (CompositeData[]) server.getAttribute(name, "Communicators");
        CompositeData own = Arrays.stream(groups)
                .filter(each -> each.get("rank").equals(rank) && each.get("operations").equals(3L))
                .findFirst()
                .orElseThrow(() -> new AssertionError(Arrays.toString(groups)));
        assertEquals("all_reduce #2", own.get("last"));
        assertTrue(((CompositeData[]) server.getAttribute(name, "Agents")).length > 0);
    }
}
