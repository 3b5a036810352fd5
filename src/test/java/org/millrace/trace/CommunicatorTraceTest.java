package org.millrace.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.trace.CommunicatorTrace.TraceName;
import org.millrace.trace.TracedCommunicator.Operation;

/** The remembered operations of a communicator. */
class CommunicatorTraceTest {

    @TempDir
    private Path directory;

    @Test
    void theOldestOperationThatHasNotEndedIsKept() throws IOException {
        ProcessTrace trace = new ProcessTrace(TraceFile.create(directory), true);
        CommunicatorTrace communicator = Objects.requireNonNull(trace.communicator(77, 0, 4, ""));
        communicator.reportKernels();
        for (int number = 0; number < 100; number++) {
            communicator.enqueued(TraceName.of("send"), number % 3 == 0 ? -1 : number, 8, 1, 4, 1, number % 4, -1);
            if (number == 20) {
                communicator.ended(8);
            }
        }
        Operation oldest = Objects.requireNonNull(read(trace).oldest());
        assertEquals(List.of(10L, 10L, 2L), List.of(oldest.number(), oldest.sequence(), (long) oldest.peer()),
                "9 is the rank's own affair");
        communicator.ended(10);
        assertEquals(11, Objects.requireNonNull(read(trace).oldest()).sequence());
        communicator.ended(66);
        assertEquals(67, Objects.requireNonNull(read(trace).oldest()).number());
        communicator.ended(67);
        assertNull(read(trace).oldest(), "the ring has the next");
        communicator.enqueued(TraceName.of("all_reduce"), 5, 8, 1, 4, 1, -1, -1);
        assertEquals(68, Objects.requireNonNull(read(trace).oldest()).number());
    }

    @Test
    void theFunctionsThatRasCountsAreCounted() throws IOException {
        ProcessTrace trace = new ProcessTrace(TraceFile.create(directory), true);
        CommunicatorTrace communicator = Objects.requireNonNull(trace.communicator(77, 0, 4, ""));
        for (String name : List.of("all_reduce", "all_reduce", "broadcast", "alltoall", "reduce_scatter", "send")) {
            communicator.enqueued(TraceName.of(name), -1, 8, 1, 4, 1, -1, -1);
        }
        assertEquals(Map.of("Broadcast", 1L, "Reduce", 0L, "AllGather", 0L, "ReduceScatter", 1L, "AllReduce", 2L),
                read(trace).functions());
    }

    @Test
    void anOperationIsNamedOnlyIfItsCommunicatorIsCertain() throws IOException {
        try (OwnTrace _ = new OwnTrace(directory)) {
            ProcessTrace trace = Objects.requireNonNull(ProcessTrace.current());
            enqueue(trace, 77, 0, "all_gather");
            String first = "all_gather #0 (8 bytes)";
            assertEquals(first, TracedCommunicator.present(0, -1), "the only communicator");
            CommunicatorTrace second = enqueue(trace, 88, 0, "broadcast");
            String unknown = "unknown (any of 2 communicators of this process may own the connection)";
            assertEquals(unknown, TracedCommunicator.present(0, 0));
            assertEquals(first, TracedCommunicator.present(77, 0));
            assertEquals(first, TracedCommunicator.present(77, 5), "its rank in the communicator of a split");
            second.close();
            assertEquals(first, TracedCommunicator.present(0, 0));
            enqueue(trace, 77, 1, "reduce");
            assertEquals("reduce #0 (8 bytes)", TracedCommunicator.present(77, 1));
            assertEquals(unknown, TracedCommunicator.present(77, -1));
            assertEquals("unknown (this process's trace has none of the communicator)",
                    TracedCommunicator.present(99, 0));
        }
    }

    private static CommunicatorTrace enqueue(ProcessTrace trace, long hash, int rank, String name) {
        CommunicatorTrace made = Objects.requireNonNull(trace.communicator(hash, rank, 2, ""));
        made.enqueued(TraceName.of(name), 0, 8, 1, 4, 1, -1, -1);
        return made;
    }

    private static TracedCommunicator read(ProcessTrace trace) throws IOException {
        return TraceReader.read(trace.path()).communicators().getFirst();
    }
}
