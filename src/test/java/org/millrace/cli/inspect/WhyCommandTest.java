package org.millrace.cli.inspect;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.millrace.trace.Verdict;

class WhyCommandTest {

    @Test
    void oneProcessIsOne() {
        assertEquals("No operation is stalled in 1 process that runs and 2 that have ended.",
                WhyCommand.nothingStands(1, 2));
        assertEquals("No operation is stalled in 2 processes that run and 1 that has ended.",
                WhyCommand.nothingStands(2, 1));
    }

    private static Verdict verdict(Verdict.Cause cause) {
        return new Verdict(cause, 1, null, null, null, null, "", null, null, 0, Duration.ZERO, Set.of(1L));
    }

    @Test
    void jobsThatHaveEndedAreLeftOutBesideAStall() {
        Verdict ended = verdict(Verdict.Cause.ENDED);
        Verdict stall = verdict(Verdict.Cause.GONE);
        assertEquals(List.of(stall), WhyCommand.told(List.of(ended, ended, stall), false));
        assertEquals(List.of(ended, stall), WhyCommand.told(List.of(ended, stall), true), "processes were named");
        assertEquals(List.of(ended), WhyCommand.told(List.of(ended), false), "nothing else is known");
    }
}
