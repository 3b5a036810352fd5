package org.millrace.cli.inspect;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.millrace.trace.reader.TracedCommunicator;
import org.millrace.trace.reader.TracedCommunicator.Operation;
import org.millrace.trace.reader.TracedConnection.Frame;
import org.millrace.trace.reader.TracedLink;
import org.millrace.trace.reader.TracedProcess;

/**
 * The last steps in the format of Chrome's trace viewer, which Perfetto reads as well: a process for each rank, a row
 * for each channel and direction, and one for each communicator's operations. What has not ended ends now.
 */
final class ChromeTrace {

    private static final int OPERATION_ROWS = 1_000_000;

    private final List<Object> events = new ArrayList<>();

    private ChromeTrace() {}

    static Map<String, Object> of(List<TracedProcess> processes) {
        ChromeTrace trace = new ChromeTrace();
        List<TracedLink> links = TracedLink.of(processes);
        for (TracedProcess process : processes) {
            trace.add(process, links.stream().filter(link -> link.process() == process).toList());
        }
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("displayTimeUnit", "ns");
        document.put("traceEvents", trace.events);
        return document;
    }

    private void add(TracedProcess process, List<TracedLink> links) {
        String rank = Processes.rank(process, links);
        name("process_name", process, 0, (rank.isEmpty() ? "" : "rank " + rank + ", ") + "pid "
                + process.identity().pid() + " on " + process.host());
        int row = 0;
        for (TracedLink link : links) {
            row++;
            name("thread_name", process, row,
                    "channel " + link.channel() + (link.connection().sends() ? " -> " : " <- ")
                            + (link.peer() < 0 ? link.connection().identity().peerText() : "rank " + link.peer()));
            for (Frame frame : link.connection().last()) {
                Map<String, Object> what = new LinkedHashMap<>();
                what.put("bytes", frame.size());
                what.put("step_end", frame.end());
                what.put("frame", frame.number());
                span(process, row, frame.protocol() + " " + Units.bytes(frame.size()), frame.taken(), frame.done(),
                        what);
            }
        }
        row = OPERATION_ROWS;
        for (TracedCommunicator communicator : process.communicators()) {
            row++;
            if (!communicator.last().isEmpty()) {
                name("thread_name", process, row,
                        "operations of " + (communicator.name().isEmpty() ? Long.toHexString(communicator.hash())
                                : communicator.name()));
                for (Operation operation : communicator.last()) {
                    Map<String, Object> what = new LinkedHashMap<>();
                    what.put("bytes", operation.bytes());
                    what.put("count", operation.count());
                    span(process, row, TopView.text(operation),
                            operation.started() == 0 ? operation.enqueued() : operation.started(), operation.ended(),
                            what);
                }
            }
        }
    }

    private void name(String what, TracedProcess process, int row, String text) {
        Map<String, Object> event = event("M", what, process, row);
        event.put("args", Map.of("name", text));
        events.add(event);
    }

    private void span(TracedProcess process, int row, String name, long begun, long ended, Map<String, Object> what) {
        if (begun == 0) {
            return;
        }
        long end = ended == 0 ? process.read() : ended;
        Map<String, Object> event = event("X", name, process, row);
        event.put("ts", process.epochMillis(begun) * 1000);
        event.put("dur", Math.max(0, end - begun) / 1e3);
        if (ended == 0) {
            what.put("under_way", true);
        }
        event.put("args", what);
        events.add(event);
    }

    private static Map<String, Object> event(String phase, String name, TracedProcess process, int row) {
        Map<String, Object> event = new LinkedHashMap<>();
        event.put("ph", phase);
        event.put("name", name);
        event.put("pid", process.identity().pid());
        event.put("tid", row);
        return event;
    }
}
