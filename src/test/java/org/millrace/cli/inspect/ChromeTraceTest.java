package org.millrace.cli.inspect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.ConnectionIdentity;
import org.millrace.trace.TracedConnection.Frame;
import org.millrace.trace.TracedConnection;
import org.millrace.trace.TracedGin;
import org.millrace.trace.TracedProcess;
import org.millrace.trace.TracedState;

/** Viewers read a trace only if the spans of each row do not overlap. */
class ChromeTraceTest {

    private static final long NOW = 1_000_000_000_000L;

    private static TracedProcess process(List<Frame> frames, TracedGin... gin) {
        ConnectionIdentity identity =
                new ConnectionIdentity(7, 0, 1, 0, Direction.SEND, 0, 0, 0, 0, 0, "shm", "a peer", "a name");
        TracedConnection connection = new TracedConnection(0, 1, TracedState.OPEN, identity, 0, NOW, 0, frames.size(),
                0, 0, 0, NOW, -1, 0, 0, 0, 0, frames);
        return new TracedProcess(Path.of("trace"), new ProcessIdentity(10, 1, 1), true, "host", "a test", 0, 2, false,
                NOW + 1_000_000, NOW, 0, 1_795_000_000_000L, NOW, Map.of(), List.of(), List.of(), List.of(connection),
                List.of(gin), List.of(), List.of(), List.of(), List.of());
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> events(List<Frame> frames) {
        return (List<Map<String, Object>>) TraceCommand.ChromeTrace.of(List.of(process(frames))).get("traceEvents");
    }

    /**
     * The trace has overlapping operations, operations that begin at the same time and take no time, and one operation
     * in flight.
     */
    @Test
    void spansOfARowDoNotTouch() {
        List<Frame> frames = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            long taken = NOW + i / 3 * 100;
            frames.add(new Frame(i, i + 1, 100, "Simple", taken, i == 5 ? 0 : i % 7 == 0 ? taken : taken + 40 * i));
        }
        Map<Object, Double> ends = new HashMap<>();
        int spans = 0;
        for (Map<String, Object> event : events(frames)) {
            if (event.get("ph").equals("X")) {
                double begun = (Double) event.get("ts");
                double end = begun + (Double) event.get("dur");
                assertTrue(end > begun && begun > ends.getOrDefault(event.get("tid"), -1.0), event.toString());
                ends.put(event.get("tid"), end);
                spans++;
            }
        }
        assertEquals(60, spans);
        assertTrue(ends.size() > 1 && ends.size() < 60, "rows: " + ends.size());
    }

    @SuppressWarnings("unchecked")
    @Test
    void queuesOfGinAreNamedByTheirCommunicator() {
        TracedGin context = new TracedGin(0xfeed, 0, 2, 3, 128, "", TracedState.OPEN, Map.of(),
                List.of(new TracedGin.Queue(0, 4, 4, NOW), new TracedGin.Queue(1, 9, 7, NOW + 500)));
        List<Map<String, Object>> all =
                (List<Map<String, Object>>) TraceCommand.ChromeTrace.of(List.of(process(List.of(), context)))
                        .get("traceEvents");
        List<Object> names = all.stream().map(event -> event.get("args")).toList();
        assertTrue(names.contains(Map.of("name", "GIN feed, context 3 -> rank 0")), names.toString());
        assertTrue(names.contains(Map.of("name", "GIN feed, context 3 -> rank 1")), names.toString());
        assertTrue(names.contains(Map.of("taken", 4L, "completed", 4L)), names.toString());
        assertTrue(names.contains(Map.of("taken", 9L, "completed", 7L, "under_way", true)), names.toString());
    }
}
