package org.millrace.bench.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BaselineTest {

    @TempDir
    Path directory;

    @Test
    void nothingMovesAgainstItself() throws IOException {
        assertEquals(List.of(), stored(Sample.results(1, 1)).movements(Sample.results(1, 1)));
    }

    @Test
    void aSlowerMachineIsNoMovementButASlowerJavaIs() throws IOException {
        Results alike = Sample.results(1, 1);
        Baseline baseline = stored(alike);
        List<Movement> clock = baseline.movements(Sample.results(2, 2));
        assertEquals(List.of("fences:native/alone"), clock.stream().map(Movement::key).toList(),
                "only the line without C has nothing to be compared with but the clock");
        List<Movement> java = baseline.movements(Sample.results(2, 1));
        assertTrue(java.stream()
                .anyMatch(movement -> movement.key().equals("fences:native/get_acquire")
                        && movement.after() / movement.before() > 1.9),
                java.toString());
        assertTrue(java.getFirst().toString().contains("slower"));
        assertTrue(baseline.movements(Sample.results(0.5, 1)).getFirst().toString().contains("faster"),
                "a change for the better is told too");
    }

    @Test
    void whatOverlapsOrIsSmallDidNotMove() throws IOException {
        List<Movement> movements = stored(Sample.results(1, 1)).movements(Sample.results(1.03, 1));
        assertEquals(List.of(), movements.stream().filter(movement -> movement.what().startsWith("ratio")).toList());
    }

    @Test
    void linesThatOnlyOneHasAreLeftOut() throws IOException {
        Results more = Sample.results(1, 1);
        more.add(Sample.line("new", 9, 1));
        assertEquals(List.of(), stored(Sample.results(1, 1)).movements(more));
    }

    @Test
    void anythingElseIsRefusedWithItsName() throws IOException {
        Path file = directory.resolve("other.json");
        for (String text : List.of("{}", "[", "{\"format\": \"millrace-bench-baseline-1\"}")) {
            Files.writeString(file, text);
            assertTrue(assertThrows(IOException.class, () -> Baseline.read(file)).getMessage().contains("other.json"),
                    text);
        }
    }

    private Baseline stored(Results results) throws IOException {
        Path file = directory.resolve("kind").resolve("baseline.json");
        Baseline.of(results).write(Map.of("date", "today"), file);
        return Baseline.read(file);
    }
}
