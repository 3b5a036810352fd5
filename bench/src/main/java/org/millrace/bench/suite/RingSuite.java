package org.millrace.bench.suite;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.millrace.abi.ConnectionLayout;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Pair;
import org.millrace.bench.ring.OtherProcess;
import org.millrace.bench.ring.OtherSide;
import org.millrace.bench.ring.RingMemory;
import org.millrace.bench.ring.RingProtocol;
import org.millrace.bench.ring.RingRole;
import org.millrace.bench.ring.WorkLoops;

/** A step through {@code connFifo}, {@code tail} and {@code head}. */
public final class RingSuite implements Suite {

    private static final String THREADS = "threads";
    private static final String PROCESSES = "processes";
    private static final int TIMED_STEPS = 20_000;
    private static final int TIMED_ROUNDS = 5;

    @Override
    public String name() {
        return "rings";
    }

    @Override
    public String title() {
        return "Rings: a step between two threads and between two processes";
    }

    @Override
    public String description() {
        return "One side posts a step as a device does, the other takes it and frees its slot as a proxy does; both "
                + "spin. Round trip: one step there and its "
                + "credit back, nothing else under way. Stream: as many steps under way as there are slots. Java's "
                + "sides use the descriptors of "
                + "org.millrace.abi as the proxies do, with their addresses in instance fields.";
    }

    @Override
    public List<String> variants(boolean full) {
        return List.of(THREADS, PROCESSES);
    }

    @Override
    public void run(String variant, Bench bench) throws IOException {
        if (!bench.cores().two()) {
            bench.note("rings need two cores: with one, each step would cost two time slices of the scheduler");
            return;
        }
        if (variant.equals(PROCESSES)) {
            Path shared = Path.of("/dev/shm");
            Path directory = Files.isWritable(shared) ? shared : Path.of(System.getProperty("java.io.tmpdir"));
            bench.cores().unpin(); // the started process would inherit the binding to one core
            try (OtherProcess other = OtherProcess.start(bench.java(), directory)) {
                bench.cores().pinToFirst();
                measure(other.ring(), other, bench);
            }
            return;
        }
        RingMemory ring = new RingMemory(Arena.global().allocate(RingMemory.LAYOUT.totalBytes(), 4096));
        try (RingThread other = new RingThread(ring, bench)) {
            measure(ring, other, bench);
        }
        try (Partner partner = new Partner(bench.cores())) {
            List<Loop> constant = RingProtocol.constant(ring);
            RingRole inC = new RingRole(RingProtocol.SIMPLE, 0, true);
            bench.measure(Pair.same("roundtrip.constant", "Round trip, segments static final", "SIMPLE, no data",
                    partner.with(constant.getFirst(), constant.getLast()),
                    partner.with(inC.device(ring, 1, bench.c()), inC.loop(ring, bench.c()))));
            WorkLoops java = new WorkLoops();
            WorkLoops c = new WorkLoops();
            bench.measure(Pair.same("work", "Work FIFO",
                    "one item of " + WorkLoops.ITEM_BYTES + " bytes, put in, read and given back",
                    partner.with(java.host(), java.device()),
                    partner.with(c.ofC("work_put", bench.c()), c.ofC("work_take", bench.c()))));
        }
    }

    private static void measure(RingMemory ring, OtherSide other, Bench bench) {
        List<RingRole> roles = RingRole.ALL.stream().filter(role -> !role.ofC()).toList();
        for (int window : new int[] {1, ConnectionLayout.SLOTS}) {
            for (RingRole role : roles) {
                RingRole inC = new RingRole(role.protocol(), role.bytes(), true);
                String id = (window == 1 ? "roundtrip." : "stream.") + role.protocol().name().toLowerCase() + "."
                        + role.bytes();
                String title = role.protocol() + (role.bytes() == 0 ? ", no data" : ", " + role.bytes() + " bytes");
                bench.measure(Pair.same(id, window == 1 ? "Round trip" : "Stream", title,
                        other.with(role.device(ring, window, bench.c()), role),
                        other.with(inC.device(ring, window, bench.c()), inC)).withBytes(role.bytes()));
            }
        }
        if (bench.c().isPresent() && bench.wants("latency")) {
            latencies(ring, other, bench);
        }
    }

    /** Records the time of each round trip, alternately of Java and C. */
    private static void latencies(RingMemory ring, OtherSide other, Bench bench) {
        long[] javaTimes = new long[TIMED_STEPS];
        MemorySegment cTimes = Arena.global().allocate(ValueLayout.JAVA_LONG, TIMED_STEPS);
        Loop java = other.with(RingProtocol.timedDevice(ring, javaTimes), new RingRole(RingProtocol.SIMPLE, 0, false));
        Loop c = other.with(RingProtocol.timedDevice(ring, cTimes, bench.c()),
                new RingRole(RingProtocol.SIMPLE, 0, true));
        Histogram ofJava = new Histogram(3);
        Histogram ofC = new Histogram(3);
        for (int warmUp = 0; warmUp < 2000; warmUp++) {
            java.run(16);
        }
        for (int round = 0; round < TIMED_ROUNDS; round++) {
            java.run(TIMED_STEPS);
            c.run(TIMED_STEPS);
            for (int step = 1; step < TIMED_STEPS; step++) {
                ofJava.recordValue(javaTimes[step]);
                ofC.recordValue(cTimes.getAtIndex(ValueLayout.JAVA_LONG, step));
            }
        }
        add("java", ofJava, bench);
        add("c", ofC, bench);
    }

    /**
     * Adds the latencies of a side twice: as measured, and corrected. While a step was slow, the next steps were posted
     * late. The corrected distribution contains the latencies that they would have had.
     */
    private static void add(String side, Histogram histogram, Bench bench) {
        bench.add(new Bench.Distribution("latency.measured", "Round trip, SIMPLE without data, as measured", side,
                histogram, Double.NaN));
        bench.add(new Bench.Distribution("latency",
                "Round trip, SIMPLE without data, corrected for coordinated omission", side,
                histogram.copyCorrectedForCoordinatedOmission(Math.max(1, histogram.getValueAtPercentile(50))),
                Double.NaN));
    }
}
