package org.millrace.bench.suite;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.millrace.bench.access.Access;
import org.millrace.bench.access.LineMemory;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Pair;

/**
 * Access modes, fences, and the pairs of accesses in protocols. They run alone, and while another thread reads or
 * writes the same line or one of the next two.
 */
public final class FenceSuite implements Suite {

    private static final String HEAP = "heap";
    private static final String NATIVE = "native";
    private static final String MAPPED = "mapped";
    static final List<Access> CONTENDED = List.of(Access.GET_ACQUIRE, Access.SET_RELEASE, Access.GET_AND_ADD,
            Access.DATA_RELEASE_POLL, Access.DATA_VOLATILE_POLL, Access.DATA_FULL_FENCE_POLL, Access.STORE_FENCE_LOAD);

    /** Location of the other thread's accesses. */
    private enum Distance {
        SAME_LINE("same line", 0), NEXT_LINE("next line", 64), TWO_AWAY("a line two away", 128);

        private final String title;
        private final long bytes;

        Distance(String title, long bytes) {
            this.title = title;
            this.bytes = bytes;
        }
    }

    @Override
    public String name() {
        return "fences";
    }

    @Override
    public String title() {
        return "Fences and access modes";
    }

    @Override
    public String description() {
        return "One operation is one access, or one of the pairs named. The eight words of a cache line take turns. "
                + "The segment is a static final field, so "
                + "that what is left is the access: what a segment in an instance field adds stands under "
                + "Crossings. 'Polled' and 'written': a thread of C on "
                + "another core reads, or writes, a word of that line all the time; it is the same thread for Java "
                + "and for C.";
    }

    @Override
    public List<String> variants(boolean full) {
        return full ? List.of(HEAP, NATIVE, MAPPED, NATIVE + "-contended", MAPPED + "-contended")
                : List.of(HEAP, NATIVE, MAPPED, NATIVE + "-contended");
    }

    @Override
    public void run(String variant, Bench bench) throws IOException {
        String kind = variant.split("-")[0];
        MemorySegment line =
                kind.equals(MAPPED) ? mapped() : Arena.global().allocate(LineMemory.BYTES, LineMemory.BYTES);
        LineMemory.choose(line);
        if (kind.equals(variant)) {
            alone(kind, line, bench);
        } else {
            contended(kind, line, bench);
        }
    }

    private static void alone(String kind, MemorySegment line, Bench bench) {
        for (Access access : Access.values()) {
            bench.measure(Pair.same(access.id(), access.group(), access.title(),
                    kind.equals(HEAP) ? access.onArray() : access.onSegment(),
                    bench.c().loop(access.symbol(), line, MemorySegment.NULL)));
        }
    }

    private static void contended(String kind, MemorySegment line, Bench bench) {
        if (!bench.cores().two() || !bench.c().isPresent()) {
            bench.note("accesses under contention need two cores and a C compiler");
            return;
        }
        MemorySegment stop = Arena.global().allocate(LineMemory.BYTES, LineMemory.BYTES);
        try (Partner partner = new Partner(bench.cores())) {
            for (boolean writing : new boolean[] {false, true}) {
                for (Distance distance : Distance.values()) {
                    MemorySegment word = line.asSlice(distance.bytes);
                    Loop contender = bench.c().loop(writing ? "contend_writing" : "contend_reading", word, stop);
                    String doing = writing ? "written" : "polled";
                    stop.set(ValueLayout.JAVA_LONG, 0, 0);
                    partner.start(contender, 1);
                    for (Access access : CONTENDED) {
                        String group = distance.title.substring(0, 1).toUpperCase() + distance.title.substring(1) + " "
                                + doing;
                        bench.measure(Pair.same(doing + "." + distance.bytes + "." + access.id(), group, access.title(),
                                access.onSegment(), bench.c().loop(access.symbol(), line, MemorySegment.NULL)));
                    }
                    ValueLayout.JAVA_LONG.varHandle().setRelease(stop, 0L, 1L);
                    partner.await();
                }
            }
        }
    }

    /**
     * Maps a file of shared memory, as two processes would.
     *
     * @return a page of it
     * @throws IOException if it cannot be mapped
     */
    public static MemorySegment mapped() throws IOException {
        Path directory = Path.of("/dev/shm");
        Path file = Files.createTempFile(
                Files.isWritable(directory) ? directory : Path.of(System.getProperty("java.io.tmpdir")),
                "millrace-bench", null);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            return channel.map(MapMode.READ_WRITE, 0, 4096, Arena.global());
        } finally {
            Files.delete(file);
        }
    }
}
