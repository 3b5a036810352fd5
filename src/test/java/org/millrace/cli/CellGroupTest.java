package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Operation;
import org.millrace.Route;

/** A cell counts only if it ran on the requested route. */
class CellGroupTest {

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            nullValues = "none",
            value = {"ring   | Simple | NORMAL | SHM by copy | '' | ''",
                    "direct | Simple | NORMAL | SHM by copy | '' | ''",
                    "ring   | Simple | NORMAL | none        | '' | ''",
                    "ring   | Simple | NORMAL | SHM         | '' | 'asked for SHM, SHM ran, and nothing says why'",
                    "ring   | Simple | NORMAL | P2P         | '' | 'asked for SHM, P2P ran, and nothing says why'",
                    "tree   | Simple | NORMAL | SHM by copy | '' | 'asked for ring, tree ran, and nothing says why'",
                    "ring   | LL     | NORMAL | SHM by copy | 'Simple: not on process 4' | ''",
                    "ring   | Simple | PTR    | SHM by copy | '' | 'asked for NORMAL, PTR ran, and nothing says why'",})
    void whatRanIsComparedWithWhatWasAskedFor(String algorithm, String protocol, String mode, String transport,
            String refusal, String failure) {
        CellGroup group = new CellGroup(0, 2, false, new TransportVariant("SHM by copy", List.of("ring"), Map.of()),
                "ring", "Simple", CellGroup.Mode.NORMAL, List.of());
        RouteMismatch found = group.difference(new Route(algorithm, protocol, mode,
                transport == null ? List.of() : List.of(transport), List.of("Simple: not on process 4")));
        assertEquals(refusal.replace(" 4", ""), found.refusal());
        assertEquals(failure, found.failure());
    }

    /** A failed cell can be repeated alone, because its data does not depend on the other selected cells. */
    @Test
    void aCellsDataDoesNotDependOnWhatElseIsSelected() {
        MatrixPlan all = plan(List.of(Operation.values()), MatrixPlan.ALGORITHMS, List.of(2, 3));
        MatrixPlan one = plan(List.of(Operation.REDUCE), List.of("tree"), List.of(3));
        Set<Long> seeds = new HashSet<>();
        all.groups().forEach(group -> group.cells().forEach(cell -> seeds.add(group.seed(7, cell))));
        assertEquals(all.groups().stream().mapToInt(group -> group.cells().size()).sum(), seeds.size());
        for (CellGroup group : one.groups()) {
            CellGroup same = all.groups()
                    .stream()
                    .filter(other -> other.where().equals(group.where()) && other.variant().equals(group.variant())
                            && other.algorithm().equals(group.algorithm()) && other.protocol().equals(group.protocol())
                            && other.mode() == group.mode())
                    .findFirst()
                    .orElseThrow();
            assertNotEquals(same.number(), group.number());
            CellGroup.Cell cell = same.cells()
                    .stream()
                    .filter(each -> each.operation() == Operation.REDUCE)
                    .findFirst()
                    .orElseThrow();
            assertEquals(same.seed(7, cell), group.seed(7, group.cells().getFirst()));
        }
    }

    @Test
    void aSampleIsOfGroupsThatCanRun() {
        for (long seed = 0; seed < 30; seed++) {
            MatrixPlan some = MatrixPlan.of(
                    new MatrixPlan.Selected(List.of(Operation.values()), MatrixPlan.ALGORITHMS, TransportVariant.all(),
                            MatrixPlan.PROTOCOLS, List.of(CellGroup.Mode.values()), List.of(2), List.of(false), 6),
                    seed, Map.of());
            assertEquals(6, some.groups().size());
            assertEquals(List.of(), some.groups().stream().filter(group -> !group.mayRun()).toList());
        }
        assertFalse(plan(List.of(Operation.REDUCE), MatrixPlan.ALGORITHMS, List.of(2)).groups()
                .stream()
                .allMatch(CellGroup::mayRun), "all of them are in the whole table");
    }

    private static MatrixPlan plan(List<Operation> collectives, List<String> algorithms, List<Integer> ranks) {
        return MatrixPlan.of(new MatrixPlan.Selected(collectives, algorithms, TransportVariant.all(),
                MatrixPlan.PROTOCOLS, List.of(CellGroup.Mode.values()), ranks, List.of(false, true), 0), 7, Map.of());
    }
}
