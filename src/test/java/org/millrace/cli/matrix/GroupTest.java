package org.millrace.cli.matrix;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Route;

/** A cell counts only if what was asked for is what ran. */
class GroupTest {

    @ParameterizedTest
    @CsvSource(delimiter = '|', nullValues = "none", value = {
        "ring   | Simple | NORMAL | SHM by copy | '' | ''",
        "direct | Simple | NORMAL | SHM by copy | '' | ''",
        "ring   | Simple | NORMAL | none        | '' | ''",
        "ring   | Simple | NORMAL | SHM         | '' | 'asked for SHM, SHM ran, and nothing says why'",
        "ring   | Simple | NORMAL | P2P         | '' | 'asked for SHM, P2P ran, and nothing says why'",
        "tree   | Simple | NORMAL | SHM by copy | '' | 'asked for ring, tree ran, and nothing says why'",
        "ring   | LL     | NORMAL | SHM by copy | 'Simple: not on process 4' | ''",
        "ring   | Simple | PTR    | SHM by copy | '' | 'asked for NORMAL, PTR ran, and nothing says why'",
    })
    void whatRanIsComparedWithWhatWasAskedFor(String algorithm, String protocol, String mode, String transport, String refusal, String failure) {
        Group group = new Group(0, 2, false, new Way("SHM by copy", List.of("ring"), Map.of()), "ring", "Simple", Mode.NORMAL, List.of());
        Difference found = group.difference(new Route(algorithm, protocol, mode, transport == null ? List.of() : List.of(transport), List.of("Simple: not on process 4")));
        assertEquals(refusal.replace(" 4", ""), found.refusal());
        assertEquals(failure, found.failure());
    }
}
