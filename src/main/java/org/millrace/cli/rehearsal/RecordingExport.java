package org.millrace.cli.rehearsal;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.millrace.rehearsal.RecordedRun.Call;
import org.millrace.rehearsal.RecordedRun.Connection;
import org.millrace.rehearsal.RecordedRun.Process;
import org.millrace.rehearsal.RecordedRun.Step;
import org.millrace.rehearsal.RecordedRun;

/**
 * Writes a recording in a format that other programs read. The output is written line by line, because a recording may
 * have millions of steps. Times are microseconds since the recording began.
 */
final class RecordingExport {

    /** Gap between two spans of a row, in nanoseconds. Viewers treat two spans without a gap as nested. */
    private static final long GAP_NANOS = 2;

    private final RecordedRun run;
    private final PrintWriter out;
    private final long begin;

    public RecordingExport(RecordedRun run, PrintWriter out) {
        this.run = run;
        this.out = out;
        begin = run.begin();
    }

    /** Writes every step and every operation as a line of comma-separated values. */
    public void csv() {
        out.println("what,host,pid,communicator,rank,peer,channel,begin_us,end_us,bytes,name,protocol,step_end,"
                + "kernel_wait_us,wire_wait_us,enqueued_us,count,type,root");
        for (Step each : run.steps()) {
            Connection on = each.connection();
            line("step", on.process(), on.hash(), on.rank(), on.peer(), on.channel(), each.taken(), each.done(),
                    each.size());
            out.println((on.sends() ? "send" : "receive") + ',' + each.protocol() + ',' + each.end() + ','
                    + each.kernelWait() / 1e3 + ',' + each.wireWait() / 1e3 + ",,,,");
        }
        for (Call each : run.calls()) {
            line("operation", each.group().process(), each.group().hash(), each.group().rank(), each.peer(), -1,
                    each.started(), each.ended(), each.bytes());
            out.println(each.kind() + ",,,,," + micros(each.enqueued()) + ',' + each.count() + ',' + each.type() + ','
                    + (each.root() < 0 ? "" : each.root()));
        }
        out.flush();
    }

    private void line(String what, Process process, long hash, int rank, int peer, int channel, long from, long until,
            long bytes) {
        out.print(what + ',' + process.host() + ',' + process.pid() + ',' + Long.toHexString(hash) + ',' + known(rank)
                + ',' + known(peer) + ',' + known(channel) + ',' + micros(from) + ',' + micros(until) + ','
                + known(bytes) + ',');
    }

    private static String known(long number) {
        return number < 0 ? "" : Long.toString(number);
    }

    private String micros(long nanos) {
        return nanos == 0 ? "" : String.format(Locale.ROOT, "%.3f", (nanos - begin) / 1e3);
    }

    /** Writes the format of Chrome's trace viewer, which Perfetto reads as well, with a row for each connection. */
    public void chrome() {
        out.print("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        Map<Object, Row> rows = new HashMap<>();
        for (Step each : run.steps()) {
            row(rows, each.connection(), each.connection().process(), each.connection().toString()).span(each.taken(),
                    each.done(), each.size() + " B", "\"bytes\":" + each.size() + ",\"step_end\":" + each.end()
                            + ",\"kernel_wait_us\":" + each.kernelWait() / 1e3);
        }
        for (Call each : run.calls()) {
            row(rows, each.group(), each.group().process(),
                    "operations of rank " + each.group().rank() + " in " + Long.toHexString(each.group().hash()))
                    .span(each.started() == 0 ? each.enqueued() : each.started(),
                            each.ended() == 0 ? each.enqueued() : each.ended(), each.kind(),
                            "\"bytes\":" + each.bytes() + ",\"count\":" + each.count());
        }
        out.println("\n]}");
        out.flush();
    }

    private Row row(Map<Object, Row> rows, Object of, Process process, String name) {
        return rows.computeIfAbsent(of, made -> new Row(process.pid(), rows.size(), name));
    }

    /** A row of the viewer, and further rows with the same name for overlapping spans. */
    private final class Row {

        private static final int LANES = 100;

        private final long pid;
        private final int number;
        private final String name;
        private final List<Long> free = new ArrayList<>();

        Row(long pid, int number, String name) {
            this.pid = pid;
            this.number = number;
            this.name = name.replaceAll("[\"\\\\\\p{Cntrl}]", "_");
        }

        void span(long from, long until, String what, String arguments) {
            int lane = 0;
            while (lane < free.size() && free.get(lane) > from) {
                lane++;
            }
            if (lane == free.size()) {
                event(lane, "M", "thread_name", "", "\"name\":\"" + name + '"');
                free.add(from);
            }
            free.set(lane, until + GAP_NANOS);
            event(lane, "X", what,
                    String.format(Locale.ROOT, "\"ts\":%.3f,\"dur\":%.3f,", (from - begin) / 1e3, (until - from) / 1e3),
                    arguments);
        }

        private void event(int lane, String phase, String what, String times, String arguments) {
            out.print((number == 0 && free.isEmpty() ? "" : ",") + "\n{\"ph\":\"" + phase + "\",\"name\":\"" + what
                    + "\",\"pid\":" + pid + ",\"tid\":" + (number * LANES + lane) + ',' + times + "\"args\":{"
                    + arguments + "}}");
        }
    }
}
