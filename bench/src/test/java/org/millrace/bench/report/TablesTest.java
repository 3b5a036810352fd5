package org.millrace.bench.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** JMH's JSON as tables, and the comparison of two builds. */
class TablesTest {

    private static final String PAGE = """
            text
            <!-- machine fences -->
            another
            <!-- end -->
            <!-- table fences:native -->
            old
            <!-- end -->
            <!-- table rings:threads -->
            stays
            <!-- end -->
            """;

    @TempDir
    Path directory;

    @Test
    void aPageGetsTheTablesThatWereMeasured() throws IOException {
        List<JmhResult> results = read(access("JAVA", "[3.0,3.0,3.0],[3.0,3.0]"), access("C", "[2.0,2.0]"),
                result("OtherBenchmark.method", "\"side\":\"C\"", "[1.0]", ""));
        assertEquals("""
                text
                <!-- machine fences -->
                this machine
                <!-- end -->
                <!-- table fences:native -->

                | | | Java, ns | C, ns | Java / C |
                | --- | --- | --- | --- | --- |
                | Writes | set release | 3.00 | 2.00 | 1.50 (1.50 to 1.50) |

                <!-- end -->
                <!-- table rings:threads -->
                stays
                <!-- end -->
                """, new Tables(results, "this machine").renew(PAGE));
    }

    @Test
    void aLineOfOneSideHasNoRatio() throws IOException {
        assertTrue(new Tables(read(access("JAVA", "[3.0]")), "").all()
                .contains("| Writes | set release | 3.00 |  |  |\n"));
    }

    @Test
    void runsOfTheSameLineAreOneLine() throws IOException {
        String table = new Tables(
                read(access("JAVA", "[3.0]"), access("C", "[2.0]"), access("JAVA", "[6.0,6.0]"), access("C", "[2.0]")),
                "").all();
        assertTrue(table.contains("| Writes | set release | 6.00 | 2.00 | 3.00 (1.50 to 3.00) |\n"), table);
    }

    @Test
    void latenciesHaveTheirPercentiles() throws IOException {
        String other =
                "\"p50\":{\"rawData\":[[100,300]]},\"p99\":{\"rawData\":[[1000]]},\"p999\":{\"rawData\":[[20000]]},"
                        + "\"cpu\":{\"rawData\":[[12.4]]}";
        assertEquals("""
                m

                ### idle:every-20us

                | latency, ns | | 50 % | 99 % | 99.9 % | CPU burnt |
                | --- | --- | --- | --- | --- | --- |
                | spin, a step every 20 µs | C | 200 | 1,000 | 20,000 | 12 % |

                """, new Tables(read(
                result("IdleBenchmark.steps", "\"idle\":\"SPIN\",\"interval\":\"20\",\"side\":\"C\"", "[1.0]", other)),
                "m").all());
    }

    @Test
    void everyTableOfThePageHasABenchmark() throws IOException {
        String proxies = Stream.of("IdlePassBenchmark.pass,\"connections\":\"2\",\"waitsFor\":\"STEP\"",
                "ProxyStepBenchmark.slice,\"payload\":\"4096\"", "ProxyInCBenchmark.loop,\"work\":\"step.4096\"",
                "CrossingBenchmark.loop,\"call\":\"errno\",\"side\":\"JAVA\"",
                "WayBenchmark.loop,\"access\":\"static.get_and_add\",\"side\":\"JAVA\"",
                "StepBenchmark.loop,\"between\":\"threads\",\"inFlight\":\"8\",\"protocol\":\"LL.480\",\"side\":\"C\"",
                "StepBenchmark.loop,\"between\":\"processes\",\"inFlight\":\"1\",\"protocol\":\"SIMPLE.0\",\"side\":\"C\"",
                "FifoBenchmark.loop,\"fifo\":\"work\",\"side\":\"C\"",
                "ContendedBenchmark.loop,\"access\":\"GET_ACQUIRE\",\"distance\":\"0\",\"memory\":\"native\","
                        + "\"other\":\"polled\",\"side\":\"C\"",
                "ContendedBenchmark.loop,\"access\":\"GET_ACQUIRE\",\"distance\":\"64\",\"memory\":\"pinned\","
                        + "\"other\":\"polled\",\"side\":\"C\"",
                "AccessBenchmark.loop,\"access\":\"GET_PLAIN\",\"memory\":\"pinned\",\"side\":\"C\"",
                "AccessBenchmark.loop,\"access\":\"GET_PLAIN\",\"memory\":\"native\",\"side\":\"C\"",
                "FrameBenchmark.loop,\"bytes\":\"65536\",\"inFlight\":\"0\",\"network\":\"shm\",\"shape\":\"stream\",\"side\":\"JAVA\"",
                "GpuFlagBenchmark.loop,\"fence\":\"true\",\"side\":\"JAVA\"",
                "GpuCopyBenchmark.copy,\"bytes\":\"8\",\"kernel\":\"true\",\"way\":\"OUT\"")
                .map(each -> result(each.substring(0, each.indexOf(',')), each.substring(each.indexOf(',') + 1),
                        "[120.0]", ""))
                .collect(Collectors.joining(","));
        String tables = new Tables(read(proxies), "").all();
        assertTrue(tables.contains("| A slice end to end | 4 KiB | 120 | 120 | 1.00 (C does less) |\n"), tables);
        String page = Files.readString(Path.of("../src/site/markdown/fences.md"));
        page.lines()
                .filter(line -> line.startsWith("<!-- table ") && !line.contains("idle:"))
                .forEach(line -> assertTrue(tables.contains("\n### " + line.split(" ")[2] + "\n"), line));
        for (String row : List.of("downcall, errno captured", "getAndAdd", "LL, 480 bytes", "SIMPLE, no data",
                "one item of 96 bytes, put in, read and given back", "| Same line polled |",
                "| Next line polled by the GPU |", "GPU to host and back, with __threadfence_system",
                "2 connections")) {
            assertTrue(tables.contains(row) && page.contains(row), row + " in\n" + tables);
        }
    }

    @Test
    void theComparisonIsThatOfPairs() throws IOException {
        List<JmhResult> before = read(access("JAVA", "[10.0],[40.0],[10.0],[10.0],[10.0]"), access("C", "[1.0]"));
        List<JmhResult> after = read(access("JAVA", "[11.0],[44.0],[12.0],[11.0],[11.0]"));
        assertEquals("""
                | benchmark | A | B | B / A | pairs |
                | --- | --- | --- | --- | --- |
                | AccessBenchmark.loop {memory=native, access=SET_RELEASE, side=JAVA} | 10.0 | 11.0 | \
                1.100 (1.100 to 1.200), slower | 5 |
                """, Comparison.of(before, after));
    }

    @Test
    void aComparisonWithoutAgreementHasNoVerdict() throws IOException {
        List<JmhResult> before = read(access("JAVA", "[10.0],[10.0],[10.0],[10.0],[10.0]"));
        for (String after : List.of("[11.0],[11.0],[11.0],[11.0]", "[11.0],[11.0],[11.0],[11.0],[9.9]",
                "[10.1],[10.1],[10.1],[10.1],[10.1]")) {
            assertFalse(Comparison.of(before, read(access("JAVA", after))).contains("slower"), after);
        }
    }

    @Test
    void anotherFileIsRefused() {
        assertThrows(IOException.class, () -> read("{"));
        assertThrows(IOException.class, () -> JmhResult.read(List.of(directory.resolve("missing.json"))));
    }

    private static String access(String side, String forks) {
        return result("AccessBenchmark.loop",
                "\"memory\":\"native\",\"access\":\"SET_RELEASE\",\"side\":\"" + side + "\"", forks, "");
    }

    private static String result(String name, String parameters, String forks, String other) {
        return """
                {"benchmark":"org.millrace.bench.%s","params":{%s},"vmName":"VM","vmVersion":"25",
                 "primaryMetric":{"score":1.0,"scoreError":"NaN","rawData":[%s]},"secondaryMetrics":{%s}}"""
                .formatted(name, parameters, forks, other);
    }

    private List<JmhResult> read(String... results) throws IOException {
        Path file = directory.resolve("result.json");
        Files.writeString(file, "[" + String.join(",", results) + "]");
        return JmhResult.read(List.of(file));
    }
}
