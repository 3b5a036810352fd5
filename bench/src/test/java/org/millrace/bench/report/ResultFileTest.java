package org.millrace.bench.report;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ResultFileTest {

    @TempDir
    Path directory;

    @Test
    void whatIsWrittenIsRead() throws IOException {
        Results results = Sample.results(0.5, 0.25);
        Path file = directory.resolve("result.json");
        ResultFile.write(results, file);
        Results read = ResultFile.read(file);
        assertEquals(results.environment(), read.environment());
        assertEquals(results.notes(), read.notes());
        assertEquals(results.lines().stream().map(Line::key).toList(), read.lines().stream().map(Line::key).toList());
        assertArrayEquals(results.lines().getFirst().java(), read.lines().getFirst().java());
        assertEquals(results.lines().getFirst().ratio(), read.lines().getFirst().ratio());
        assertEquals(results.latencies().getFirst().histogram(), read.latencies().getFirst().histogram());
        assertEquals(0.5, read.latencies().getFirst().cpuShare());
    }

    @Test
    void severalJvmsBecomeOneLine() {
        Results results = Sample.results(0.5, 0.25);
        results.add(Sample.results(1, 0.5));
        Line line = results.lines().getFirst();
        assertEquals(2, line.forks().size());
        assertEquals(42, line.java().length);
        assertEquals(2, line.ratio().value(), 0.01);
        assertEquals(2000, results.latencies().getFirst().histogram().getTotalCount());
    }

    @Test
    void anythingElseIsRefusedWithItsName() throws IOException {
        Path file = directory.resolve("other.json");
        Files.writeString(file, "{\"format\": 1}");
        assertTrue(assertThrows(IOException.class, () -> ResultFile.read(file)).getMessage().contains("other.json"));
    }

    @Test
    void jsonComesBackAsItWent() {
        Map<String, Object> value = Map.of("list", Arrays.asList(1.0, -2.5e-7, null, true, "a \"b\" \\ \n\t\u0001 é"),
                "empty", List.of(), "map", Map.of());
        assertEquals(value, JsonText.read(JsonText.write(value)));
    }

    @Test
    void brokenJsonIsRefusedWithItsPlace() {
        for (String text : List.of("", "{", "[1,", "{\"a\" 1}", "[1] 2", "nul", "\"a", "[1 2]")) {
            assertTrue(assertThrows(IllegalArgumentException.class, () -> JsonText.read(text), text).getMessage()
                    .contains("no JSON"), text);
        }
    }
}
