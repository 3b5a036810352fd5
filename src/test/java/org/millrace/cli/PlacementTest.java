package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PlacementTest {

    @Test
    void ranksAreSpreadEvenlyInTheOrderOfTheHosts() {
        assertEquals(List.of(new Placement(0, "a", 0, 2), new Placement(1, "a", 1, 2), new Placement(2, "me@b", 0, 1)),
                Placement.of(3, List.of("a", "me@b")));
        assertEquals("b", new Placement(2, "me@b", 0, 1).address());
    }

    @Test
    void hostsMaySayHowManyRanksTheyHave() {
        List<Placement> placements = Placement.of(null, List.of("a:1", "b:3"));
        assertEquals(4, placements.size());
        assertEquals(new Placement(3, "b", 2, 3), placements.getLast());
    }

    @Test
    void thisHostNeedsNoSsh() {
        assertTrue(Placement.of(1, List.of("localhost")).getFirst().isHere());
        assertTrue(Placement.of(1, List.of(Host.name())).getFirst().isHere());
        assertFalse(Placement.of(1, List.of("127.0.0.2")).getFirst().isHere());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"2 | a,b,c | leave 1 of 3 hosts without", "2 | a,a | twice", "3 | a:1,b:1 | place for 2 ranks",
                    "3 | a:1,b | for each host, or for none", "2 | -oProxyCommand=x,b | is not usable",
                    "2 | a:0,b | is not usable", "2 | localhost,b | cannot reach this host as localhost",
                    "2 | a b | is not usable", " | a | how many ranks?"})
    void whatDoesNotFitIsRefused(Integer ranks, String hosts, String expected) {
        IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, () -> Placement.of(ranks, List.of(hosts.split(","))));
        assertTrue(refused.getMessage().contains(expected), refused.getMessage());
    }
}
