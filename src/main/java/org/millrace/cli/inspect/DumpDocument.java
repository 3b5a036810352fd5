package org.millrace.cli.inspect;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.base.Json;
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
        return Json.object("schema", SCHEMA, "millrace", Version.millrace(), "taken",
                (double) System.currentTimeMillis(), "processes",
                processes.stream().map(process -> process(process, links)).toList());
    }

    private static Map<String, Object> process(TracedProcess process, List<TracedLink> links) {
        return Json.object("pid", process.identity().pid(), "host", process.host(), "rank", known(process.rank()),
                "ranks", known(process.size()), "state", Processes.state(process), "program", process.program(), "file",
                process.file().toString(), "begun", process.epochMillis(process.epochNanos()), "seen",
                time(process, process.heartbeat()), "settings", process.settings(), "ports", process.ports(),
                "messages",
                process.messages()
                        .stream()
                        .map(message -> Json.object("time", time(process, message.time()), "text", message.text()))
                        .toList(),
                "agents", process.agents().stream().map(agent -> agent(process, agent)).toList(), "communicators",
                process.communicators().stream().map(communicator -> communicator(process, communicator)).toList(),
                "connections",
                links.stream()
                        .filter(link -> link.process() == process)
                        .map(link -> Json.with(link(link), "frames_last", frames(link)))
                        .toList(),
                "gin", process.gin().stream().map(context -> gin(process, context)).toList());
    }

    private static Map<String, Object> agent(TracedProcess process, TracedAgent agent) {
        return Json.object("number", agent.number(), "name", agent.name(), "thread",
                agent.thread() == 0 ? null : agent.thread(), "passes", agent.passes(), "passes_busy", agent.busy(),
                "cpu_seconds", agent.cpuNanos() / 1e9, "counted", time(process, agent.clock()));
    }

    private static Map<String, Object> communicator(TracedProcess process, TracedCommunicator communicator) {
        return Json.object("hash", Long.toHexString(communicator.hash()), "name", communicator.name(), "rank",
                known(communicator.rank()), "ranks", known(communicator.size()), "state", communicator.state().label(),
                "operations", communicator.enqueued(), "operations_last",
                communicator.last().stream().map(operation -> operation(process, operation)).toList());
    }

    private static Map<String, Object> operation(TracedProcess process, Operation operation) {
        return Json.object("name", operation.name(), "sequence", operation.sequence() < 0 ? null : operation.sequence(),
                "bytes", operation.bytes(), "count", operation.count(), "channels",
                operation.channels() == 0 ? null : operation.channels(), "peer", known(operation.peer()), "root",
                known(operation.root()), "enqueued", time(process, operation.enqueued()), "started",
                time(process, operation.started()), "ended", time(process, operation.ended()));
    }

    static Map<String, Object> link(TracedLink link) {
        TracedConnection connection = link.connection();
        TracedProcess process = link.process();
        return Json.object("communicator", Long.toHexString(connection.identity().communicator()), "pid",
                process.identity().pid(), "rank", known(link.rank()), "peer", known(link.peer()), "peer_pid",
                link.other() == null ? null : link.other().process().identity().pid(), "peer_process",
                connection.identity().peerText(), "channel", known(link.channel()), "channel_is_counted",
                link.isChannelCounted(), "direction", connection.identity().direction().label(), "network",
                connection.identity().network(), "name", connection.identity().name(), "state",
                connection.state().label(), "standing", connection.standing().label(), "waits_for",
                link.waitsFor().label(), "stands_seconds", link.standsSeconds(), "frames", connection.frames(), "bytes",
                connection.bytes(), "step_taken", connection.taken(), "step_done", connection.done(), "step_blocked",
                connection.isBlocked() ? connection.blocked() : null, "step_consumed",
                connection.sends() ? null : connection.consumed(), "wait_kernel_seconds",
                connection.kernelNanos() / 1e9, "wait_wire_seconds", connection.wireNanos() / 1e9, "wait_peer_seconds",
                connection.peerNanos() / 1e9, "agent", known(connection.agent()), "opened",
                time(process, connection.opened()), "changed", time(process, connection.lastChange()));
    }

    private static List<Map<String, Object>> frames(TracedLink link) {
        return link.connection().last().stream().map(frame -> frame(link.process(), frame)).toList();
    }

    private static Map<String, Object> frame(TracedProcess process, Frame frame) {
        return Json.object("number", frame.number(), "step_end", frame.end(), "bytes", frame.size(), "protocol",
                frame.protocol(), "taken", time(process, frame.taken()), "done", time(process, frame.done()));
    }

    static Map<String, Object> gin(TracedProcess process, TracedGin context) {
        Map<String, Object> kinds = new LinkedHashMap<>();
        context.descriptors().forEach((kind, count) -> kinds.put(kind.label(), count));
        return Json.object("communicator", Long.toHexString(context.communicator()), "rank", known(context.rank()),
                "ranks", context.peers(), "context", context.context(), "queue_size", context.queueSize(), "state",
                context.state().label(), "descriptors", kinds, "queues",
                context.queues()
                        .stream()
                        .map(queue -> Json.object("peer", queue.peer(), "taken", queue.taken(), "completed",
                                queue.completed(), "changed", time(process, queue.lastChange())))
                        .toList());
    }

    private static @Nullable Integer known(int number) {
        return number < 0 ? null : number;
    }

    private static @Nullable Double time(TracedProcess process, long nanos) {
        return nanos == 0 ? null : process.epochMillis(nanos);
    }
}
