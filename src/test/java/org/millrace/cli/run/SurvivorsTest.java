package org.millrace.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.millrace.cli.run.RankEvent.Failed;
import org.millrace.cli.run.RankEvent.Finished;

class SurvivorsTest {

    private final List<RankEvent> passed = Collections.synchronizedList(new ArrayList<>());

    /** Runs a rank whose output cannot be written. */
    private CommandRanks run(PrintWriter failures) {
        OutputStream full = new OutputStream() {
            @Override
            public void write(int each) throws IOException {
                throw new IOException("full");
            }
        };
        CommandRanks ranks = new CommandRanks(1, new CommandRanks.Command(List.of("sh", "-c", "echo line; exit 0"),
                rank -> Map.of(), Duration.ofSeconds(1)), full, full, failures, passed::add);
        ranks.start();
        try {
            assertTrue(ranks.awaitEnd(Duration.ofSeconds(60)));
        } finally {
            ranks.stop();
        }
        return ranks;
    }

    @Test
    void aRankWithUnwritableOutputLivesUntilItEnds() {
        StringWriter printed = new StringWriter();
        CommandRanks ranks = run(new PrintWriter(printed));
        assertEquals(List.of(new Finished(0)), List.copyOf(passed));
        assertEquals("millrace: rank 0: what it writes cannot be passed on: full; the rank continues",
                printed.toString().strip());
        assertEquals(0, ranks.status());
    }

    @Test
    void unwritableOutputIsNotTheEndOfAProcess() {
        run(null);
        assertEquals(List.of(new Failed(0, "what it writes cannot be passed on: full", "", false), new Finished(0)),
                List.copyOf(passed));
    }
}
