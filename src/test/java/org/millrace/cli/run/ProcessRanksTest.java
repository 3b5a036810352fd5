package org.millrace.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Messages about ranks that do not report their own failure. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ProcessRanksTest {

    /** A rank that allocates memory without limit, and therefore cannot report its own failure. */
    static final class Greedy {

        private Greedy() {}

        public static void main(String[] arguments) {
            List<byte[]> taken = new ArrayList<>();
            while (true) {
                try {
                    taken.add(new byte[64 << 10]);
                } catch (OutOfMemoryError none) {
                    // The process ends as if one thread had died of the error and the main thread had ended normally.
                    System.exit(0);
                }
            }
        }
    }

    @Test
    void aRankThatRunsOutOfMemorySaysSo() {
        // The list begins with the path of java and the option that all ranks have.
        List<String> greedy = new ArrayList<>(JavaCommand.of(List.of()).subList(0, 2));
        greedy.addAll(List.of("-Xmx8m", "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"),
                Greedy.class.getName()));
        List<RankEvent> events = new CopyOnWriteArrayList<>();
        ProcessRanks ranks = new ProcessRanks(1, rank -> greedy, rank -> Map.of(), events::add,
                new PrintWriter(new StringWriter(), true));
        ranks.start();
        assertTrue(ranks.awaitEnd(Duration.ofSeconds(100)));
        assertEquals(1, events.size(), events.toString());
        String said = assertInstanceOf(RankEvent.Failed.class, events.getFirst()).message();
        assertTrue(said.contains("memory ran out: Java heap space"), said);
    }

    /** The rank's process continues until its standard input ends. */
    @Test
    void aRankWhoseEventIsCutHasFailed() throws InterruptedException {
        String cut = EventCodec.encode(new RankEvent.Finished(0)).replaceFirst("}$", "");
        List<String> command = List.of("sh", "-c", "echo '" + cut + "'; echo '" + cut + "'; cat");
        BlockingQueue<RankEvent> events = new LinkedBlockingQueue<>();
        ProcessRanks ranks = new ProcessRanks(1, rank -> command, rank -> Map.of(), events::add,
                new PrintWriter(new StringWriter(), true));
        ranks.start();
        String said = assertInstanceOf(RankEvent.Failed.class, events.take()).message();
        assertTrue(said.contains("not an event of a rank: " + cut), said);
        ranks.stop();
        assertTrue(events.isEmpty(), "one end of the rank: " + events);
    }
}
