package org.millrace.cli.inspect;

import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.millrace.cli.base.Converters;
import org.millrace.cli.base.Json;
import org.millrace.cli.base.Units;
import org.millrace.trace.TracedCommunicator.Operation;
import org.millrace.trace.TracedCommunicator;
import org.millrace.trace.TracedConnection.Frame;
import org.millrace.trace.TracedGin.Queue;
import org.millrace.trace.TracedGin;
import org.millrace.trace.TracedLink;
import org.millrace.trace.TracedProcess;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;

/** {@code millrace trace}. */
@Command(
        name = "trace",
        description = {"Write the last steps of each connection, and the last operations, in Chrome's trace format:"
                + " open the file in chrome://tracing or https://ui.perfetto.dev."})
public final class TraceCommand extends InspectCommand {

    @Option(
            names = "--out",
            required = true,
            paramLabel = "FILE",
            converter = Converters.ResultFile.class,
            description = "Where to.")
    private Path file;

    @Override
    public Integer call() {
        Json.save("--out", file, Json.write(ChromeTrace.of(processes.require())));
        return ExitCode.OK;
    }

    /**
     * The last recorded steps, in the format of Chrome's trace viewer. Perfetto reads this format as well. The viewer
     * shows a process for each rank, a row for each channel and direction, and a row for each communicator's
     * operations. An unfinished span is shown up to the time of the reading. Viewers require that the spans of one row
     * are nested. A span that begins before an earlier span has ended is therefore put on a further row with the same
     * name. Times are microseconds since the first span began, because a double cannot hold nanoseconds since 1970.
     * {@code otherData} has the absolute time of the first span.
     */
    static final class ChromeTrace {

        private static final int OPERATION_ROWS = 1_000_000;
        private static final int GIN_ROWS = 2_000_000;
        /**
         * Maximum number of rows of a connection. The numbers of the first rows of two successive connections differ by
         * this number.
         */
        private static final int LANES = 256;
        /**
         * Maximum time by which a span's beginning is moved to avoid a further row, in nanoseconds. Recorded times are
         * inexact, because one reading of the clock serves several events.
         */
        private static final long TOLERANCE_NANOS = 1_000;
        /**
         * Gap between two spans, and minimum length of a span, in nanoseconds. Viewers treat two spans without a gap as
         * nested, and ignore an empty span.
         */
        private static final long GAP_NANOS = 2;

        private record Span(long begun, long ended, String name, Map<String, Object> what) {
        }

        private final List<Map<String, Object>> events = new ArrayList<>();
        private long begin = Long.MAX_VALUE;

        private ChromeTrace() {}

        static Map<String, Object> of(List<TracedProcess> processes) {
            ChromeTrace trace = new ChromeTrace();
            List<TracedLink> links = TracedLink.of(processes);
            for (TracedProcess process : processes) {
                trace.add(process, links.stream().filter(link -> link.process() == process).toList());
            }
            Map<String, Object> document = new LinkedHashMap<>();
            document.put("displayTimeUnit", "ns");
            if (trace.begin != Long.MAX_VALUE) {
                document.put("otherData", Map.of("begun", Instant.EPOCH.plusNanos(trace.begin).toString()));
            }
            trace.events.forEach(
                    event -> event.computeIfPresent("ts", (name, nanos) -> ((Long) nanos - trace.begin) / 1e3));
            document.put("traceEvents", trace.events);
            return document;
        }

        private void add(TracedProcess process, List<TracedLink> links) {
            String rank = Processes.rank(process, links);
            name("process_name", process, 0, (rank.isEmpty() ? "" : "rank " + rank + ", ") + "pid "
                    + process.identity().pid() + " on " + process.host());
            int row = 0;
            for (TracedLink link : links) {
                row += LANES;
                List<Span> spans = new ArrayList<>();
                for (Frame frame : link.connection().last()) {
                    Map<String, Object> what =
                            Json.object("bytes", frame.size(), "step_end", frame.end(), "frame", frame.number());
                    spans.add(new Span(frame.taken(), frame.done(), frame.protocol() + " " + Units.bytes(frame.size()),
                            what));
                }
                rows(process, row,
                        "channel " + link.channel() + (link.connection().sends() ? " -> " : " <- ")
                                + (link.peer() < 0 ? link.connection().identity().peerText() : "rank " + link.peer()),
                        spans);
            }
            row = OPERATION_ROWS;
            for (TracedCommunicator communicator : process.communicators()) {
                row += LANES;
                List<Span> spans = new ArrayList<>();
                for (Operation operation : communicator.last()) {
                    Map<String, Object> what = Json.object("bytes", operation.bytes(), "count", operation.count());
                    spans.add(new Span(operation.started() == 0 ? operation.enqueued() : operation.started(),
                            operation.ended(), TopView.text(operation), what));
                }
                rows(process, row, "operations of "
                        + (communicator.name().isEmpty() ? Long.toHexString(communicator.hash()) : communicator.name()),
                        spans);
            }
            row = GIN_ROWS;
            for (TracedGin context : process.gin()) {
                for (Queue queue : context.queues()) {
                    row += LANES;
                    add(process, row, context, queue);
                }
            }
        }

        /**
         * Adds a span for a queue of GIN. The span begins at the queue's last change, because a trace contains the
         * queue's counters, but no descriptors. The span has not ended if descriptors are still in flight.
         */
        private void add(TracedProcess process, int row, TracedGin context, Queue queue) {
            Map<String, Object> what = Json.object("taken", queue.taken(), "completed", queue.completed());
            boolean underWay = queue.taken() != queue.completed();
            rows(process, row,
                    "GIN " + Long.toHexString(context.communicator()) + ", context " + context.context() + " -> rank "
                            + queue.peer(),
                    new ArrayList<>(List.of(new Span(queue.lastChange(), underWay ? 0 : queue.lastChange(),
                            underWay ? "descriptors" : "last descriptor", what))));
        }

        /** Puts each span on the first row that is free at its beginning. */
        private void rows(TracedProcess process, int first, String name, List<Span> spans) {
            List<Long> free = new ArrayList<>();
            spans.sort(Comparator.comparingLong(Span::begun));
            for (Span span : spans) {
                if (span.begun == 0) {
                    continue;
                }
                int lane = 0;
                while (lane < free.size() && free.get(lane) - span.begun > TOLERANCE_NANOS) {
                    lane++;
                }
                if (lane == free.size()) {
                    free.add(span.begun - GAP_NANOS);
                    name("thread_name", process, first + lane, name + (lane == 0 ? "" : " (" + (lane + 1) + ")"));
                }
                long begun = Math.max(span.begun, free.get(lane) + GAP_NANOS);
                long end = Math.max(begun + GAP_NANOS, span.ended == 0 ? process.read() : span.ended);
                free.set(lane, end);
                add(process, first + lane, span, begun, end);
            }
            if (free.isEmpty() && first < OPERATION_ROWS) {
                name("thread_name", process, first, name); // names the row even if the connection is idle
            }
        }

        private void name(String what, TracedProcess process, int row, String text) {
            Map<String, Object> event = event("M", what, process, row);
            event.put("args", Map.of("name", text));
            events.add(event);
        }

        private void add(TracedProcess process, int row, Span span, long begun, long end) {
            long nanos = process.epochMillis() * 1_000_000 + begun - process.epochNanos(); // nanoseconds since 1970
            begin = Math.min(begin, nanos);
            Map<String, Object> event = event("X", span.name, process, row);
            event.put("ts", nanos);
            event.put("dur", (end - begun) / 1e3);
            if (span.ended == 0) {
                span.what.put("under_way", true);
            }
            event.put("args", span.what);
            events.add(event);
        }

        private static Map<String, Object> event(String phase, String name, TracedProcess process, int row) {
            return Json.object("ph", phase, "name", name, "pid", process.identity().pid(), "tid", row);
        }
    }
}
