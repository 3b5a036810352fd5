package org.millrace.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.millrace.Route;

class EventCodecTest {

    static Stream<RankEvent> events() {
        return Stream.of(new RankEvent.Joined(3, 4711, "a host", "emulated device\t0"),
                new RankEvent.Measured(3, 17, new CaseResult(12345.678901234567, 0),
                        new CaseResult(1e-3, CaseResult.UNCHECKED)),
                new RankEvent.Routed(3, 17,
                        new Route("ring", "LL", "NORMAL", List.of("P2P", "SHM by copy"), List.of())),
                new RankEvent.Routed(3, 17, new Route("direct", "Simple", "PTR", List.of(), List.of())),
                new RankEvent.Checked(3, 17, 5, 2, "P2P: other\tprocess", ""),
                new RankEvent.Noted(3, "descriptors:\t5"), new RankEvent.Befallen(3, "cut:frame=9,rail=1"),
                new RankEvent.Finished(3), new RankEvent.Failed(3,
                        "two\nlines, a \\n that is none, a tab\t and a \\ at the end\\", "trace\r\n\tat here\n", false),
                new RankEvent.Failed(3, "", "", false));
    }

    @ParameterizedTest
    @MethodSource("events")
    void survivesTheWayThroughALine(RankEvent event) {
        String line = EventCodec.encode(event);
        assertFalse(line.contains("\n") || line.contains("\r"), line);
        assertEquals(Optional.of(event), EventCodec.decode(3, line));
    }

    @Test
    void otherLinesAreNoEvents() {
        assertEquals(Optional.empty(), EventCodec.decode(0, "WARNING: something"));
        assertEquals(Optional.empty(), EventCodec.decode(0, ""));
    }
}
