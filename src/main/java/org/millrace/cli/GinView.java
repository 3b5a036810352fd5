package org.millrace.cli;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.GinFields.Kind;
import org.millrace.trace.TracedGin.Queue;
import org.millrace.trace.TracedGin;
import org.millrace.trace.TracedProcess;
import org.millrace.trace.TracedState;

/** What contexts of GIN did between two looks at processes. */
final class GinView {

    private record Context(TracedProcess process, TracedGin gin, double seconds, @Nullable TracedGin before) {

        long count(Kind kind) {
            return gin.descriptors().getOrDefault(kind, 0L);
        }

        double rate(Kind kind) {
            return (count(kind) - (before == null ? 0 : before.descriptors().getOrDefault(kind, 0L))) / seconds;
        }

        long underWay() {
            return gin.queues().stream().mapToLong(queue -> queue.taken() - queue.completed() & 0xffff_ffffL).sum();
        }

        double standsSeconds() {
            long last = gin.queues().stream().mapToLong(Queue::lastChange).max().orElse(0);
            return last == 0 ? 0 : Math.max(0, process.read() - last) / 1e9;
        }
    }

    private final List<Context> contexts = new ArrayList<>();

    /** @param seconds between the two looks */
    GinView(List<TracedProcess> earlier, List<TracedProcess> now, ToDoubleFunction<TracedProcess> seconds) {
        Map<String, TracedGin> before = new HashMap<>();
        for (TracedProcess process : earlier) {
            process.gin().forEach(context -> before.put(key(process, context), context));
        }
        for (TracedProcess process : now) {
            for (TracedGin context : process.gin()) {
                if (context.state() != TracedState.CLOSED) {
                    contexts.add(new Context(process, context, seconds.applyAsDouble(process),
                            before.get(key(process, context))));
                }
            }
        }
        contexts.sort(Comparator.comparingLong((Context each) -> each.gin.communicator())
                .thenComparingInt(each -> each.gin.rank())
                .thenComparingInt(each -> each.gin.context()));
    }

    private static String key(TracedProcess process, TracedGin context) {
        return process.file() + "/" + context.communicator() + "/" + context.rank() + "/" + context.context();
    }

    /** A table below an empty line, with so many lines at the most; nothing if there are no contexts. */
    List<String> lines(int width, int height) {
        if (contexts.isEmpty()) {
            return List.of();
        }
        Columns table = new Columns("PID", "RANK", "GIN CONTEXT", "PUT/s", "SIGNAL/s", "GET/s", "UNDER WAY", "SINCE",
                "<COMMUNICATOR", "PUTS", "VALUES", "SIGNALS", "GETS", "FLUSHES");
        int shown = contexts.size() <= height - 2 ? contexts.size() : Math.max(1, height - 3);
        for (Context each : contexts.subList(0, shown)) {
            table.add(Long.toString(each.process.identity().pid()),
                    each.gin.rank() < 0 ? "?" : Integer.toString(each.gin.rank()), Integer.toString(each.gin.context()),
                    Units.decimal(each.rate(Kind.PUT) + each.rate(Kind.VALUE)),
                    Units.decimal(each.rate(Kind.SIGNAL) + each.rate(Kind.SIGNALLED)),
                    Units.decimal(each.rate(Kind.GET)), Long.toString(each.underWay()),
                    Units.seconds(each.standsSeconds()),
                    each.gin.communicator() == 0 ? "?" : Long.toHexString(each.gin.communicator()),
                    Units.decimal(each.count(Kind.PUT)), Units.decimal(each.count(Kind.VALUE)),
                    Units.decimal(each.count(Kind.SIGNAL)), Units.decimal(each.count(Kind.GET)),
                    Units.decimal(each.count(Kind.FLUSH)));
        }
        List<String> lines = new ArrayList<>(List.of(""));
        lines.addAll(table.lines(width));
        if (shown < contexts.size()) {
            lines.add("... and " + (contexts.size() - shown) + " more contexts");
        }
        return lines;
    }

    List<Map<String, Object>> json() {
        return contexts.stream().map(each -> {
            Map<String, Object> one = new LinkedHashMap<>(DumpDocument.gin(each.process, each.gin));
            one.put("pid", each.process.identity().pid());
            one.put("puts_per_second", each.rate(Kind.PUT) + each.rate(Kind.VALUE));
            one.put("signals_per_second", each.rate(Kind.SIGNAL) + each.rate(Kind.SIGNALLED));
            one.put("gets_per_second", each.rate(Kind.GET));
            one.put("under_way", each.underWay());
            return one;
        }).toList();
    }
}
