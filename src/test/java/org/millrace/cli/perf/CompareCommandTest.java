package org.millrace.cli.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.cli.Run;
import org.millrace.cli.base.Json;

class CompareCommandTest {

    @TempDir
    Path directory;

    private Path run(String name, double nanos) throws IOException {
        return Files.writeString(directory.resolve(name), """
                {"collective": "all_reduce", "ranks": 2, "processes": true,
                 "settings": {"MILLRACE_NET": {"text": "socket"}},
                 "environment": {"host": "</script><b>h", "cores": 2},
                 "results": [{"size": 1024, "type": "float", "redop": "sum",
                   "out_of_place": {"time_ns": %s, "algbw": 1, "busbw": 1.5, "wrong": 0}, "in_place": null,
                   "route": {"algorithm": "ring", "protocol": "LL", "mode": "NORMAL", "transports": ["NET socket"]}}]}
                """.formatted(nanos));
    }

    private static String words(Run run) {
        return run.out().replaceAll(" +", " ");
    }

    @Test
    void ofOneRunOfEachNoNoiseIsKnown() throws IOException {
        Run compared = Run.of("compare", run("a.json", 2000).toString(), run("b.json", 3000.0).toString());
        assertEquals(0, compared.status(), compared.toString());
        assertTrue(words(compared).contains(" 1024 float sum 2.00 3.00 +50.0% - - - - -\n"), compared.toString());
        assertTrue(compared.out().contains("# one run of each"), compared.toString());
        assertTrue(compared.out()
                .contains("a.json: all_reduce, 2 ranks, processes, network socket,"
                        + " route ring LL NORMAL over NET socket\n"),
                compared.toString());
        assertEquals(1,
                compared.out()
                        .lines()
                        .filter(line -> !line.startsWith("#"))
                        .skip(1)
                        .mapToInt(String::length)
                        .distinct()
                        .count(),
                compared.toString());
    }

    @Test
    void ofRunsInTurnsTheDifferenceIsShownWithItsNoise() throws IOException {
        Run compared = Run.of("compare", run("a1.json", 2000).toString(), run("b1.json", 3000).toString(),
                run("a2.json", 1000).toString(), run("b2.json", 1600).toString(), run("a3.json", 4000).toString(),
                run("b3.json", 4000).toString());
        assertEquals(0, compared.status(), compared.toString());
        assertTrue(words(compared).contains(" 1024 float sum 2.00 3.00 +50.0% 30.0% - - - -\n"), compared.toString());
        Run odd = Run.of("compare", run("a1.json", 2000).toString(), run("b1.json", 3000).toString(),
                run("a2.json", 1000).toString());
        assertEquals(2, odd.status(), odd.toString());
        assertTrue(odd.err().contains("as many files of A as of B are needed"), odd.toString());
    }

    @Test
    void thePageHoldsBothRunsAndNothingFromElsewhere() throws IOException {
        Path page = directory.resolve("page.html");
        Run compared = Run.of("compare", run("a.json", 2000).toString(), run("b.json", 3000).toString(), "--html",
                page.toString());
        assertEquals(0, compared.status(), compared.toString());
        String html = Files.readString(page);
        assertTrue(html.contains("\"name\": \"A: a\"") && html.contains("\"name\": \"B: b\""), "names of both runs");
        assertTrue(html.contains("uPlot"), "the script that draws");
        assertFalse(html.contains("</script><b>h"), "what a file says is no markup");
        assertFalse(html.contains("src=") || html.contains("href="), "nothing is loaded");
    }

    @Test
    void thePageHasTheDifferencesWithTheirNoiseAndTheNetworks() throws IOException {
        Path page = directory.resolve("page.html");
        Run compared = Run.of("compare", run("a1.json", 2000).toString(), run("b1.json", 3000).toString(),
                run("a2.json", 1000).toString(), run("b2.json", 1600).toString(), run("a3.json", 4000).toString(),
                run("b3.json", 4000).toString(), "--html", page.toString());
        assertEquals(0, compared.status(), compared.toString());
        String html = Files.readString(page);
        String begin = "<script id=\"data\" type=\"application/json\">";
        int from = html.indexOf(begin) + begin.length();
        Map<?, ?> data = (Map<?, ?>) Json.read(html.substring(from, html.indexOf("</script>", from)));
        Map<?, ?> row = (Map<?, ?>) ((List<?>) ((Map<?, ?>) data.get("differences")).get("float sum")).getFirst();
        assertEquals(1024L, row.get("size"));
        Map<?, ?> times = (Map<?, ?>) row.get("out_of_place");
        assertEquals(List.of(2.0, 3.0), List.of(times.get("a"), times.get("b")));
        assertEquals(50, (Double) times.get("difference"), 1e-9);
        assertEquals(30, (Double) times.get("noise"), 1e-9);
        assertNull(((Map<?, ?>) row.get("in_place")).get("difference"));
        List<?> runs = (List<?>) data.get("runs");
        assertEquals(List.of("A: a1", "B: b1", "A: a2", "B: b2", "A: a3", "B: b3"),
                runs.stream().map(each -> ((Map<?, ?>) each).get("name")).toList());
        assertTrue(
                runs.stream()
                        .map(each -> ((Map<?, ?>) each).get("about").toString())
                        .allMatch(about -> about.contains("network socket, route ring LL NORMAL over NET socket")),
                html);
        assertEquals(List.of(0L, 1L, 0L, 1L, 0L, 1L),
                runs.stream().map(each -> ((Map<?, ?>) each).get("color")).toList());
    }

    private static String results(String results) {
        return "{\"collective\": \"x\", \"environment\": {}, \"results\": [" + results + "]}";
    }

    @Test
    void whatIsNoRunIsRefusedWithItsName() throws IOException {
        Path good = run("a.json", 2000);
        Path broken = Files.writeString(directory.resolve("broken.json"), "{\"a\" 1}");
        Path other = Files.writeString(directory.resolve("other.json"), "{}");
        Path numbers = Files.writeString(directory.resolve("numbers.json"), results("5"));
        Path empty = Files.writeString(directory.resolve("empty.json"), results(""));
        for (Path file : new Path[] {broken, other, numbers, empty, directory.resolve("none.json")}) {
            Run compared = Run.of("compare", good.toString(), file.toString());
            assertEquals(2, compared.status(), compared.toString());
            assertTrue(compared.err().contains(file.toString()), compared.toString());
            assertFalse(compared.err().matches("(?s).*(Exception|class |null).*"), compared.toString());
        }
    }
}
