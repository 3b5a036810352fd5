package org.millrace.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.millrace.Route;

class EventCodecTest {

    private record Joined(int rank, long pid, String host, boolean gpu) implements RankEvent {
    }

    private record Times(double nanos, long wrong) {
    }

    private record Measured(int rank, int index, Times outOfPlace, Times inPlace) implements RankEvent {
    }

    private record Routed(int rank, Route route, String text) implements RankEvent {
    }

    static Stream<RankEvent> events() {
        return Stream.of(new Joined(3, 4711, "a host\temulated", true), new Joined(3, 1L << 62, "", false),
                new Measured(3, 17, new Times(12345.678901234567, 0), new Times(1e-3, -1)),
                new Routed(3, new Route("ring", "LL", "NORMAL", List.of("P2P", "SHM by copy"), List.of()), "end"),
                new Routed(3, new Route("direct", "Simple", "PTR", List.of(), List.of("", "a\nb")), "end"),
                new RankEvent.Finished(3), new RankEvent.Failed(3,
                        "two\nlines, a \\n that is none, a tab\t and a \\ at the end\\", "trace\r\n\tat here\n", false),
                new RankEvent.Failed(3, "", "", false));
    }

    @ParameterizedTest
    @MethodSource("events")
    void survivesTheWayThroughALine(RankEvent event) {
        String line = EventCodec.encode(event);
        assertFalse(line.contains("\n") || line.contains("\r"), line);
        assertEquals(Optional.of(event), EventCodec.decode(line));
    }

    @Test
    void otherLinesAreNoEvents() {
        assertEquals(Optional.empty(), EventCodec.decode("WARNING: something"));
        assertEquals(Optional.empty(), EventCodec.decode(""));
    }

    @Test
    void onlyEventsAreMadeOfLines() {
        String finished = EventCodec.encode(new RankEvent.Finished(3));
        String other = finished.replace(RankEvent.Finished.class.getName(), Times.class.getName());
        assertThrows(IllegalArgumentException.class, () -> EventCodec.decode(other));
        String prefix = finished.substring(0, finished.indexOf('\t') + 1);
        String name = RankEvent.Finished.class.getName();
        for (String cut : List.of("", name, name + "\t", name + "\tnull", name + "\t{\"ra", name + "\t[]")) {
            String line = prefix + cut;
            String said = assertThrows(IllegalArgumentException.class, () -> EventCodec.decode(line), cut).getMessage();
            assertEquals("not an event of a rank: " + line, said);
        }
    }
}
