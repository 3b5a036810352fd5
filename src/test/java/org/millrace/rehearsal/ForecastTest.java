package org.millrace.rehearsal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.MillraceException;
import org.millrace.net.link.LinkShape;
import org.millrace.rehearsal.Costs.Line;
import org.millrace.rehearsal.Costs.Server;
import org.millrace.rehearsal.RecordedRun.Call;
import org.millrace.rehearsal.RecordedRun.Connection;
import org.millrace.rehearsal.RecordedRun.Group;
import org.millrace.rehearsal.RecordedRun.Step;

/** Compares simulated results with the results of formulas, and checks the parameters that a recording yields. */
class ForecastTest {

    private static final RecordedRun.Process PROCESS = new RecordedRun.Process("here", 1, Optional.empty());
    private static final Server NOTHING = new Server(Line.NONE, Line.NONE);
    private static final long SLOT = 128 << 10;
    private static final int HEADER = 64;

    private static RecordedRun run(String kind, long bytes) {
        Call call = new Call(new Group(PROCESS, 1, 0, 2), kind, 0, 1000, 2000, 5000, bytes, bytes / 4, 7, 0, -1, -1, 0);
        return new RecordedRun(List.of(PROCESS), List.of(), List.of(call), 0, false, List.of(), 1);
    }

    private static Costs costs(Server kernel, Server wire, int channels) {
        return new Costs(kernel, wire, SLOT, channels, 1, true, new long[0]);
    }

    private static Forecast.Row row(String kind, long bytes, Costs costs, String link, int perHost, int ranks,
            String algorithm) {
        return new Forecast(run(kind, bytes), costs, LinkShape.parse(link), perHost).rows(ranks)
                .stream()
                .filter(row -> row.algorithm().equals(algorithm))
                .findFirst()
                .orElseThrow();
    }

    private static void assertClose(double expected, double actual) {
        assertEquals(expected, actual, expected * 1e-9);
    }

    /** An all-reduce has 2(n - 1) hops of 1/n of the data. A hop takes the time alpha, plus the time beta per byte. */
    @ParameterizedTest
    @CsvSource({"2, 32768", "3, 4096", "4, 8192", "64, 65536", "1000, 1000000", "10000, 10000000"})
    void aRingOfSmallChunksTakesAlphaAndBetaForEachHop(int ranks, long bytes) {
        double alpha = 50_000 + 7000 + 3000;
        Costs costs = costs(new Server(Line.NONE, new Line(3000, 0)), new Server(Line.NONE, new Line(7000, 0)), 1);
        Forecast.Row row = row("all_reduce", bytes, costs, "rate=8Gbit,delay=50us", 1, ranks, "ring");
        long hops = 2L * (ranks - 1);
        double chunk = (double) bytes / ranks;
        int frames = chunk <= SLOT / 16 ? 1 : 2;
        assertClose(hops * 50_000, row.latency());
        assertClose(hops * 7000, row.proxy());
        assertClose(hops * 3000, row.kernel());
        if (frames == 1) {
            assertClose(hops * (alpha + chunk + HEADER), row.time());
        }
    }

    /**
     * The two frames of a chunk use the line one after the other. This order lengthens the total time only at the last
     * hop.
     */
    @Test
    void aChunksSecondFrameFollowsTheFirst() {
        Forecast.Row row = row("all_gather", SLOT, costs(NOTHING, NOTHING, 1), "rate=8Gbit,delay=10ms", 1, 5, "ring");
        double frame = SLOT / 2 + HEADER;
        assertClose(4 * (10e6 + frame) + frame, row.time());
    }

    /** A proxy works on one frame of each channel at a time. With fewer proxies than channels, frames wait. */
    @ParameterizedTest
    @CsvSource({"1, 8", "2, 4", "8, 1", "16, 1"})
    void proxiesWorkAtOnce(int proxies, int turns) {
        Server wire = new Server(new Line(7000, 0), new Line(7000, 0));
        Costs costs = new Costs(NOTHING, wire, SLOT, 8, proxies, true, new long[0]);
        Forecast.Row row = row("all_reduce", 64, costs, "delay=1us", 1, 2, "ring");
        assertClose(1000 + turns * 7000.0, row.time());
    }

    /** The engine's two ranks exchange short operands in one hop. NCCL's two ranks use the ring, with two hops. */
    @ParameterizedTest
    @CsvSource({"true, 1000", "false, 2000"})
    void twoRanksExchangeWhatIsShort(boolean exchanges, double latency) {
        Costs costs = new Costs(NOTHING, NOTHING, SLOT, 1, 1, exchanges, new long[0]);
        assertClose(latency, row("all_reduce", 64, costs, "delay=1us", 1, 2, "ring").latency());
    }

    /** The rate of the line limits the throughput. */
    @Test
    void aLongRingIsAsFastAsTheLine() {
        long bytes = 64L << 20;
        Forecast.Row row = row("all_reduce", bytes, costs(NOTHING, NOTHING, 2), "rate=1Gbit,delay=10us", 1, 4, "ring");
        double least = 1.5 * bytes * 8;
        assertTrue(row.time() > least && row.time() < 1.01 * least, row::toString);
        assertTrue(row.bandwidth() > 0.98 * row.time(), row::toString);
    }

    @Test
    void hostsAreWhatTheRingPassesTheLinkBetween() {
        Costs costs = costs(new Server(Line.NONE, new Line(1000, 0)), NOTHING, 1);
        Forecast.Row apart = row("all_gather", 4096, costs, "delay=1ms", 1, 16, "ring");
        Forecast.Row together = row("all_gather", 4096, costs, "delay=1ms", 8, 16, "ring");
        assertClose(15 * 1e6, apart.latency());
        assertClose(2 * 1e6, together.latency()); // each part of the data passes the link on one or two of 15 hops
        assertClose(15_000, together.kernel());
        assertEquals(0, row("all_gather", 4096, costs, "delay=1ms", 16, 16, "ring").latency());
    }

    /** An all-reduce passes the depth of the tree twice: up, and down. */
    @ParameterizedTest
    @CsvSource({"4, 2", "8, 3", "1024, 10", "10000, 13"})
    void aSmallTreeTakesItsDepthTwice(int ranks, int depth) {
        Costs costs = costs(new Server(Line.NONE, new Line(1000, 0)), NOTHING, 1);
        Forecast.Row row = row("all_reduce", 1024, costs, "delay=1ms", 1, ranks, "tree");
        assertClose(2 * depth * 1e6, row.latency());
        assertClose(2 * depth * 1000, row.kernel());
    }

    /** A broadcast is a pipeline: after the first frame has passed all hops, frames arrive at the rate of the line. */
    @Test
    void aBroadcastIsAPipe() {
        long frames = 100;
        Forecast.Row row =
                row("broadcast", frames * SLOT, costs(NOTHING, NOTHING, 1), "rate=8Gbit,delay=1ms", 1, 5, "ring");
        double frame = SLOT + HEADER;
        assertClose(4 * (1e6 + frame) + (frames - 1) * frame, row.time());
    }

    @Test
    void theSameRecordingSaysTheSame() {
        Costs costs = costs(new Server(new Line(100, 0.1), new Line(900, 0.3)),
                new Server(new Line(300, 0.2), new Line(5000, 0.4)), 3);
        List<List<Forecast.Row>> all = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            all.add(new Forecast(run("all_reduce", 10 << 20), costs, LinkShape.parse("rate=10Gbit,delay=10us"), 8)
                    .rows(128));
        }
        assertEquals(all.get(0), all.get(1));
        for (Forecast.Row row : all.get(0)) {
            assertClose(row.time(), row.latency() + row.bandwidth() + row.proxy() + row.kernel());
        }
    }

    @Test
    void whatHasNoMeaningThereIsRefused() {
        for (String link : List.of("delay=1ms,jitter=1ms", "down")) {
            String refused = assertThrows(MillraceException.class,
                    () -> row("all_reduce", 8, costs(NOTHING, NOTHING, 1), link, 1, 4, "ring")).getMessage();
            assertTrue(refused.contains("leave them out"), refused);
        }
        String hosts = assertThrows(MillraceException.class,
                () -> row("all_reduce", 8, costs(NOTHING, NOTHING, 1), "delay=1ms", 8, 12, "ring")).getMessage();
        assertTrue(hosts.contains("12 ranks are not a multiple of 8"), hosts);
    }

    /**
     * A recording does not state which link each frame used. The recording is therefore refused if the emulated link
     * (MILLRACE_LINK) changes over time or differs between pairs of hosts.
     */
    @ParameterizedTest
    @ValueSource(strings = {"@changes.txt", "host0-host1: delay=1ms", "delay=1us; host0-*:@slow.txt"})
    void aRecordingBehindLinksThatCannotBeTakenOutIsRefused(String link) {
        RecordedRun.Process linked = new RecordedRun.Process("there", 17, Optional.of(link));
        RecordedRun recorded = new RecordedRun(List.of(PROCESS, linked), List.of(), run("all_reduce", 8).calls(), 0,
                false, List.of(), 1);
        String refused =
                assertThrows(MillraceException.class, () -> new Forecast(recorded, LinkShape.NONE, 1)).getMessage();
        assertTrue(refused.contains("process 17 of there") && refused.contains("MILLRACE_LINK=" + link), refused);
        assertTrue(refused.contains("record it with one link"), refused);
    }

    /**
     * Each rank is 0 or 1000 ns late with equal probability, 500 ns on average. The later of two ranks is 750 ns late
     * on average, and the last of many ranks 1000 ns. On average, a rank waits 250 ns for the other rank, or 500 ns for
     * the last of many ranks.
     */
    @Test
    void theMoreRanksThereAreTheLongerTheyWaitForTheLast() {
        Costs costs = new Costs(NOTHING, NOTHING, SLOT, 1, 1, true, new long[] {0, 1000});
        assertClose(250, costs.stragglers(2));
        assertClose(500, costs.stragglers(1000));
        assertEquals(0, costs.stragglers(1));
    }

    /** In the recording, a frame of 100 bytes takes 500 ns over a link, or 40 ns if another frame has just arrived. */
    @Test
    void whatAFrameCostsIsReadFromTheRecording() {
        RecordedRun.Process linked = new RecordedRun.Process("here", 1, Optional.of("delay=2us"));
        Connection to = new Connection(linked, 1, 0, 1, 0, "SEND", 0, "0-0", "socket", "");
        Connection from = new Connection(PROCESS, 1, 1, 0, 0, "RECEIVE", 0, "0-0", "socket", "");
        Connection back = new Connection(PROCESS, 1, 1, 0, 0, "SEND", 0, "0-0", "socket", "");
        List<Step> steps = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            long at = 100_000 * i;
            steps.add(new Step(to, 2, at, at + 10, 2L * i + 1, 100, 0, 0));
            steps.add(new Step(to, 2, at + 1, at + 10, 2L * i + 2, 100, 0, 0));
            steps.add(new Step(from, 2, at + 2000, at + 2500, 2L * i + 1, 100, 0, 0));
            steps.add(new Step(from, 2, at + 2001, at + 2540, 2L * i + 2, 100, 0, 0));
            steps.add(new Step(back, 2, at + 2800, at + 2801, 2L * i + 1, 100, 0, 0));
            steps.add(new Step(back, 2, at + 2860, at + 2861, 2L * i + 2, 100, 0, 0));
        }
        Costs costs = Costs.of(new RecordedRun(List.of(linked, PROCESS), steps, List.of(), 0, false, List.of(), 1));
        assertClose(500, costs.wire().all().of(100));
        assertClose(40, costs.wire().work(100));
        assertClose(300, costs.kernel().all().of(100));
        assertClose(60, costs.kernel().work(100));
    }

    @Test
    void aLineGoesThroughTheMeans() {
        Line line = Costs.line(Map.of(0L, List.of(90L, 110L), 1000L, List.of(600L)));
        assertClose(100, line.fixed());
        assertClose(0.5, line.perByte());
        Line falling = Costs.line(Map.of(0L, List.of(500L), 1000L, List.of(100L)));
        assertEquals(0, falling.perByte(), "more bytes are not less work");
        assertClose(300, falling.fixed());
    }
}
