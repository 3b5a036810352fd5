package org.millrace.cli.inspect;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.base.Version;
import org.millrace.trace.TracedCommunicator.Operation;
import org.millrace.trace.TracedCommunicator;
import org.millrace.trace.TracedConnection.Frame;
import org.millrace.trace.TracedConnection;
import org.millrace.trace.TracedGin;
import org.millrace.trace.TracedLink;
import org.millrace.trace.TracedProcess.TracedAgent;
import org.millrace.trace.TracedProcess;

/**
 * All data of processes' traces, by the schema in {@code see-inside.md}. Times are milliseconds since 1970. Null stands
 * for an unknown number, and for the time of an event that has not happened.
 */
final class DumpDocument {

    private static final int SCHEMA = 1;

    private DumpDocument() {}

    static Map<String, Object> of(List<TracedProcess> processes) {
        List<TracedLink> links = TracedLink.of(processes);
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("schema", SCHEMA);
        document.put("millrace", Version.millrace());
        document.put("taken", (double) System.currentTimeMillis());
        document.put("processes", processes.stream().map(process -> process(process, links)).toList());
        return document;
    }

    private static Map<String, Object> process(TracedProcess process, List<TracedLink> links) {
        Map<String, Object> one = new LinkedHashMap<>();
        one.put("pid", process.identity().pid());
        one.put("host", process.host());
        one.put("rank", known(process.rank()));
        one.put("ranks", known(process.size()));
        one.put("state", Processes.state(process));
        one.put("program", process.program());
        one.put("file", process.file().toString());
        one.put("begun", process.epochMillis(process.epochNanos()));
        one.put("seen", time(process, process.heartbeat()));
        one.put("settings", process.settings());
        one.put("ports", process.ports());
        one.put("messages", process.messages().stream().map(message -> {
            Map<String, Object> text = new LinkedHashMap<>();
            text.put("time", time(process, message.time()));
            text.put("text", message.text());
            return text;
        }).toList());
        one.put("agents", process.agents().stream().map(agent -> agent(process, agent)).toList());
        one.put("communicators",
                process.communicators().stream().map(communicator -> communicator(process, communicator)).toList());
        one.put("connections", links.stream().filter(link -> link.process() == process).map(link -> {
            Map<String, Object> connection = link(link);
            connection.put("frames_last", frames(link));
            return connection;
        }).toList());
        one.put("gin", process.gin().stream().map(context -> gin(process, context)).toList());
        return one;
    }

    private static Map<String, Object> agent(TracedProcess process, TracedAgent agent) {
        Map<String, Object> one = new LinkedHashMap<>();
        one.put("number", agent.number());
        one.put("name", agent.name());
        one.put("thread", agent.thread() == 0 ? null : agent.thread());
        one.put("passes", agent.passes());
        one.put("passes_busy", agent.busy());
        one.put("cpu_seconds", agent.cpuNanos() / 1e9);
        one.put("counted", time(process, agent.clock()));
        return one;
    }

    private static Map<String, Object> communicator(TracedProcess process, TracedCommunicator communicator) {
        Map<String, Object> one = new LinkedHashMap<>();
        one.put("hash", Long.toHexString(communicator.hash()));
        one.put("name", communicator.name());
        one.put("rank", known(communicator.rank()));
        one.put("ranks", known(communicator.size()));
        one.put("state", communicator.state().label());
        one.put("operations", communicator.enqueued());
        one.put("operations_last",
                communicator.last().stream().map(operation -> operation(process, operation)).toList());
        return one;
    }

    private static Map<String, Object> operation(TracedProcess process, Operation operation) {
        Map<String, Object> one = new LinkedHashMap<>();
        one.put("name", operation.name());
        one.put("sequence", operation.sequence() < 0 ? null : operation.sequence());
        one.put("bytes", operation.bytes());
        one.put("count", operation.count());
        one.put("channels", operation.channels() == 0 ? null : operation.channels());
        one.put("peer", known(operation.peer()));
        one.put("root", known(operation.root()));
        one.put("enqueued", time(process, operation.enqueued()));
        one.put("started", time(process, operation.started()));
        one.put("ended", time(process, operation.ended()));
        return one;
    }

    static Map<String, Object> link(TracedLink link) {
        TracedConnection connection = link.connection();
        TracedProcess process = link.process();
        Map<String, Object> one = new LinkedHashMap<>();
        one.put("communicator", Long.toHexString(connection.identity().communicator()));
        one.put("pid", process.identity().pid());
        one.put("rank", known(link.rank()));
        one.put("peer", known(link.peer()));
        one.put("peer_pid", link.other() == null ? null : link.other().process().identity().pid());
        one.put("peer_process", connection.identity().peerText());
        one.put("channel", known(link.channel()));
        one.put("channel_is_counted", link.isChannelCounted());
        one.put("direction", connection.identity().direction().label());
        one.put("network", connection.identity().network());
        one.put("name", connection.identity().name());
        one.put("state", connection.state().label());
        one.put("standing", connection.standing().label());
        one.put("waits_for", link.waitsFor().label());
        one.put("stands_seconds", link.standsSeconds());
        one.put("frames", connection.frames());
        one.put("bytes", connection.bytes());
        one.put("step_taken", connection.taken());
        one.put("step_done", connection.done());
        one.put("step_blocked", connection.isBlocked() ? connection.blocked() : null);
        one.put("step_consumed", connection.sends() ? null : connection.consumed());
        one.put("wait_kernel_seconds", connection.kernelNanos() / 1e9);
        one.put("wait_wire_seconds", connection.wireNanos() / 1e9);
        one.put("wait_peer_seconds", connection.peerNanos() / 1e9);
        one.put("agent", known(connection.agent()));
        one.put("opened", time(process, connection.opened()));
        one.put("changed", time(process, connection.lastChange()));
        return one;
    }

    private static List<Map<String, Object>> frames(TracedLink link) {
        return link.connection().last().stream().map(frame -> frame(link.process(), frame)).toList();
    }

    private static Map<String, Object> frame(TracedProcess process, Frame frame) {
        Map<String, Object> one = new LinkedHashMap<>();
        one.put("number", frame.number());
        one.put("step_end", frame.end());
        one.put("bytes", frame.size());
        one.put("protocol", frame.protocol());
        one.put("taken", time(process, frame.taken()));
        one.put("done", time(process, frame.done()));
        return one;
    }

    static Map<String, Object> gin(TracedProcess process, TracedGin context) {
        Map<String, Object> one = new LinkedHashMap<>();
        one.put("communicator", Long.toHexString(context.communicator()));
        one.put("rank", known(context.rank()));
        one.put("ranks", context.peers());
        one.put("context", context.context());
        one.put("queue_size", context.queueSize());
        one.put("state", context.state().label());
        Map<String, Object> kinds = new LinkedHashMap<>();
        context.descriptors().forEach((kind, count) -> kinds.put(kind.label(), count));
        one.put("descriptors", kinds);
        one.put("queues", context.queues().stream().map(queue -> {
            Map<String, Object> each = new LinkedHashMap<>();
            each.put("peer", queue.peer());
            each.put("taken", queue.taken());
            each.put("completed", queue.completed());
            each.put("changed", time(process, queue.lastChange()));
            return each;
        }).toList());
        return one;
    }

    private static @Nullable Integer known(int number) {
        return number < 0 ? null : number;
    }

    private static @Nullable Double time(TracedProcess process, long nanos) {
        return nanos == 0 ? null : process.epochMillis(nanos);
    }
}
