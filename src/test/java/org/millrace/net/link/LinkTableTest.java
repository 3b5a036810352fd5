package org.millrace.net.link;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;

/** Link between two hosts. */
class LinkTableTest {

    @TempDir
    Path directory;

    private static String between(LinkTable links, String one, String other) {
        LinkSchedule there = links.between(LinkTable.number(one), LinkTable.number(other));
        assertEquals(there, links.between(LinkTable.number(other), LinkTable.number(one)), "either direction");
        return there == null ? "none" : there.toString();
    }

    @ParameterizedTest
    @CsvSource({"host1, host2, rate=1Gbit", "node-1, a-b, delay=2ms", "host1, host3, delay=3ms",
            "host2, host3, delay=5ms", "host3, host3, delay=5ms", "host1, host1, delay=3ms"})
    void theFirstPairThatFitsCountsAndElseTheLinkWithoutOne(String one, String other, String link) {
        LinkTable links = new LinkTable(
                "delay=5ms; host1-host2: rate=1Gbit; a-b-node-1:delay=2ms; *-host1: delay=3ms;" + "host2-host1: down");
        assertEquals(link, between(links, one, other));
    }

    @Test
    void withoutALinkForAllOtherPairsHaveNone() throws Exception {
        Path file = Files.writeString(directory.resolve("link"), "1s down");
        LinkTable links = new LinkTable("a-*: @" + file);
        assertEquals("@" + file, between(links, "b", "a"));
        assertEquals("none", between(links, "b", "c"));
        assertEquals(Optional.empty(), Optional.ofNullable(links.between(LinkTable.number("b"), LinkTable.UNKNOWN)));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"delay=1ms; delay=2ms | two links have no pair",
                    "a-b: down; a-b: delay=1ms | 'a-b' is given twice", "a: down | 'a' before ':' is no pair of hosts",
                    "a-: down | 'a-' before ':' is no pair of hosts", "a-b: fast | 'fast' is no part of a link",
                    "down; | is no part of a link", "a-b: | is no part of a link"})
    void whatCannotBeReadIsRefused(String text, String said) {
        ConfigurationException refused = assertThrows(ConfigurationException.class,
                () -> LinkNetwork.require(Configuration.load(Map.of("MILLRACE_LINK", text)), List.of()));
        assertTrue(refused.getMessage().startsWith("MILLRACE_LINK: ") && refused.getMessage().contains(said),
                refused.getMessage());
    }

    @Test
    void aPairOfHostsThatThereAreNotIsRefusedWhereAllAreKnown() {
        Configuration configuration = Configuration.load(Map.of("MILLRACE_LINK", "*-host1: down; host0-host2: down"));
        LinkNetwork.require(configuration, List.of());
        LinkNetwork.require(configuration, List.of("host0", "host1", "host2"));
        ConfigurationException refused = assertThrows(ConfigurationException.class,
                () -> LinkNetwork.require(configuration, List.of("host0", "host1")));
        assertEquals("MILLRACE_LINK: 'host0-host2' is no pair of this run's hosts, which are host0, host1",
                refused.getMessage());
    }
}
