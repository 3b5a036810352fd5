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

    private static TracedCommunicator read(ProcessTrace trace) throws IOException {
        return TraceReader.read(trace.path()).communicators().getFirst();
    }
}
