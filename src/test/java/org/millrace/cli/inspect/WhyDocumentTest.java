package org.millrace.cli.inspect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.millrace.cli.Run;
import org.millrace.cli.base.Json;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.TracedCommunicator.Operation;
import org.millrace.trace.TracedCommunicator;
import org.millrace.trace.TracedJoin;
import org.millrace.trace.TracedProcess;
import org.millrace.trace.TracedRank.ProcessState;
import org.millrace.trace.TracedRank;
import org.millrace.trace.TracedSilence;
import org.millrace.trace.TracedState;
import org.millrace.trace.Verdict.Cause;
import org.millrace.trace.Verdict;

/**
 * A parser of RAS's output can read the output of {@code millrace why --json}. The output obeys the schema of the page
 * {@code why-json.md}.
 */
class WhyDocumentTest {

    private static final Path PAGE = Path.of("src/site/markdown/why-json.md");

    private static TracedRank rank(int number, ProcessState state, TracedState communicator) {
        TracedProcess process = new TracedProcess(Path.of("trace"), new ProcessIdentity(10 + number, 1, 1),
                state != ProcessState.DEAD, "a1", "a test", number, 5, false, 0, 0, 0, 0, 0, Map.of(), List.of(),
                List.of(), List.of(), List.of(), List.of(), List.of(), List.of(), List.of());
        return new TracedRank(process, state, 0xfeedL, number,
                new TracedCommunicator(0xfeedL, number, 5, 1, "", communicator, 0, 0, true, 0, 0, 0, -1, -1, 0, null,
                        List.of(), Map.of("Broadcast", 0L, "Reduce", 0L, "AllGather", 0L, "ReduceScatter", 2L,
                                "AllReduce", 40L + number)));
    }

    /**
     * Returns four ranks: one runs, one has failed, one is stopped and one is dead. The group has a fifth rank, number
     * 4, without a trace.
     */
    private static List<TracedRank> ranks() {
        return List.of(rank(0, ProcessState.RUNNING, TracedState.OPEN),
                rank(1, ProcessState.RUNNING, TracedState.FAILED), rank(2, ProcessState.STOPPED, TracedState.OPEN),
                rank(3, ProcessState.DEAD, TracedState.OPEN));
    }

    private static Verdict verdict(Cause cause) {
        Operation operation = new Operation(43, "AllReduce", 42, 4096, 1024, 7, 2, -1, -1, 0, 0, 0, 0, 0, "RING LL");
        TracedSilence silence = cause == Cause.SILENT
                ? new TracedSilence(TracedState.OPEN, 0, 0, 4, "10.0.0.1, eth0", "b2 (10.0.0.2)", "pid 11 on 10.0.0.2")
                : null;
        BitSet missing = new BitSet();
        missing.set(2, 4);
        TracedJoin join = cause == Cause.NOT_JOINED
                ? new TracedJoin(TracedState.OPEN, 0, 2, 5, 0, 0, "tcp:10.0.0.1:29500", "connects", missing)
                : cause == Cause.NOT_CONNECTED
                        ? new TracedJoin(TracedState.OPEN, 0xfeed, 2, 0, 0, 0, "", "a connection waits", new BitSet())
                        : null;
        return new Verdict(cause, 0xfeedL, ranks().get(2), ranks().get(0), null, operation, "; a detail", silence, join,
                0, Duration.ofMillis(1500), Set.of(10L, 11L));
    }

    @ParameterizedTest
    @EnumSource(Cause.class)
    void aParserOfRasReadsEachVerdict(Cause cause) throws IOException {
        String json = Json.write(WhyDocument.of(List.of(ranks()), List.of(verdict(cause)), 0.25));
        RasStatus.Communicator communicator = RasStatus.parse(json).communicators().getFirst();
        assertEquals("0xfeed", communicator.hash());
        assertEquals(List.of(new RasStatus.Missing(2, "a1", 12, true, false),
                new RasStatus.Missing(3, "a1", 13, true, true), new RasStatus.Missing(4, "unknown", -1, false, false)),
                communicator.missing());
        assertEquals(List.of(0L, 6L), communicator.ranks().stream().map(RasStatus.Rank::asyncError).toList());
        assertEquals(List.of(40L, 41L),
                communicator.ranks().stream().map(each -> each.counts().get("AllReduce")).toList());
        Map<?, ?> document = (Map<?, ?>) Json.read(json);
        Map<?, ?> schema = schema();
        check(schema, schema, document, "document");
        Map<?, ?> verdict = (Map<?, ?>) ((List<?>) document.get("verdicts")).getFirst();
        assertEquals(List.of(cause.label(), "0xfeed", 2L, 0L, 42L, 4096L, 1.5),
                List.of(verdict.get("verdict"), verdict.get("communicator"), verdict.get("rank"), verdict.get("peer"),
                        verdict.get("sequence"), verdict.get("size"), verdict.get("still_sec")));
        assertEquals(cause == Cause.NOT_JOINED ? List.of(2L, 3L) : null, verdict.get("missing"));
        assertEquals(cause == Cause.NOT_CONNECTED ? "a connection waits" : null, verdict.get("connection"));
        Map<?, ?> alone = (Map<?, ?>) Json.read(Json.write(WhyDocument.of(verdict(cause))));
        check(schema, (Map<?, ?>) ((Map<?, ?>) schema.get("$defs")).get("verdict"), alone, "stall");
        assertEquals(1L, alone.get("schema"));
    }

    @Test
    void theParserOfRasRequiresAllFieldsExceptThoseOfMillrace() {
        Object document = Json.read(Json.write(WhyDocument.of(List.of(ranks()), List.of(), 0.25)));
        assertEquals(Set.of("schema", "millrace", "verdicts"), ignoredFields(document, document));
    }

    /**
     * Removes each field of a part of a document, parses the document, and restores the field. Returns the fields that
     * the parser does not require.
     */
    @SuppressWarnings("unchecked")
    private static Set<String> ignoredFields(Object document, Object part) {
        Set<String> ignored = new HashSet<>();
        if (part instanceof List<?> list) {
            list.forEach(each -> ignored.addAll(ignoredFields(document, each)));
        } else if (part instanceof Map<?, ?>) {
            Map<String, Object> fields = (Map<String, Object>) part;
            for (String name : List.copyOf(fields.keySet())) {
                Object value = fields.remove(name);
                try {
                    RasStatus.parse(Json.write(document));
                    ignored.add(name);
                } catch (IllegalArgumentException required) {
                    fields.put(name, value);
                    ignored.addAll(ignoredFields(document, value));
                }
                fields.put(name, value);
            }
        }
        return ignored;
    }

    @Test
    void aJobWithoutACommunicatorHasAnEmptyList() {
        assertEquals(List.of(), RasStatus.parse(Json.write(WhyDocument.of(List.of(), List.of(), 0))).communicators());
    }

    @Test
    void aCommandNeedsAWatch() {
        Run run = Run.of("why", "--exec", "true");
        assertEquals(2, run.status(), run::toString);
        assertTrue(run.err().contains("--exec needs --watch"), run::toString);
    }

    private static Map<?, ?> schema() throws IOException {
        String page = Files.readString(PAGE);
        int begin = page.indexOf("```json\n{\n  \"$schema\"") + "```json\n".length();
        return (Map<?, ?>) Json.read(page.substring(begin, page.indexOf("```", begin)));
    }

    /** Validates a value by the part of JSON Schema that the page uses. Properties that the schema lacks are errors. */
    private static void check(Map<?, ?> root, Map<?, ?> schema, @Nullable Object value, String where) {
        if (schema.get("$ref") instanceof String reference) {
            check(root, (Map<?, ?>) ((Map<?, ?>) root.get("$defs")).get(reference.substring("#/$defs/".length())),
                    value, where);
            return;
        }
        List<?> types = schema.get("type") instanceof List<?> some ? some : List.of(schema.get("type"));
        String type = switch (value) {
            case null -> "null";
            case Map<?, ?> map -> "object";
            case List<?> list -> "array";
            case String text -> "string";
            case Boolean truth -> "boolean";
            case Long number -> "integer";
            default -> "number";
        };
        assertTrue(types.contains(type) || type.equals("integer") && types.contains("number"),
                where + " is " + value + ", not " + types);
        assertTrue(schema.get("enum") == null || ((List<?>) schema.get("enum")).contains(value), where + " " + value);
        if (value instanceof Map<?, ?> map && schema.get("properties") instanceof Map<?, ?> properties) {
            assertTrue(map.keySet().containsAll((List<?>) schema.get("required")), where + " lacks a field: " + map);
            map.forEach((name, each) -> {
                if (properties.get(name) instanceof Map<?, ?> property) {
                    check(root, property, each, where + "." + name);
                } else {
                    fail(where + "." + name + " is not in the schema");
                }
            });
        }
        if (value instanceof List<?> list) {
            list.forEach(each -> check(root, (Map<?, ?>) schema.get("items"), each, where + "[]"));
        }
    }
}
