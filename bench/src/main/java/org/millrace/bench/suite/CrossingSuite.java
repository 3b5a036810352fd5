package org.millrace.bench.suite;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import org.millrace.bench.access.LineMemory;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.crossing.Accesses;
import org.millrace.bench.crossing.Calls;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Pair;

/** Calls between Java and C, and the ways in which Java accesses memory. */
public final class CrossingSuite implements Suite {

    private static final String CALLS = "calls";
    private static final String ACCESSES = "accesses";
    private static final Map<String, String> TITLES = Map.of("get_acquire", "get acquire", "set_release", "set release",
            "get_and_add", "getAndAdd", "set_volatile", "set volatile", "head_release", "SendMem.headRelease",
            "tail_acquire", "RecvMem.tailAcquire", "size_acquire", "RecvMem.sizeAcquire", "size_plain",
            "RecvMem.sizePlain (store)");

    @Override
    public String name() {
        return "crossings";
    }

    @Override
    public String title() {
        return "Crossings";
    }

    @Override
    public String description() {
        return "Calls: a function that adds 1 is called from Java, and a Java method that does is called from C; C "
                + "calls the same function through a pointer "
                + "that it reads anew for each call. The goal does not hold for them: Java has to change the "
                + "thread's state. Accesses: the same word, reached " + "in the ways that Java has, beside C's access.";
    }

    @Override
    public List<String> variants(boolean full) {
        return List.of(CALLS, ACCESSES);
    }

    @Override
    public void run(String variant, Bench bench) {
        if (variant.equals(ACCESSES)) {
            accesses(bench);
        } else if (bench.c().isPresent()) {
            calls(bench);
        } else {
            bench.note("calls need a C compiler: there is nothing to call");
        }
    }

    private static void calls(Bench bench) {
        CLibrary c = bench.c();
        Calls.choose(c);
        Loop call = c.loop("crossing_call", MemorySegment.NULL, pointerTo(c.address("crossing_callee")));
        Loop callErrno = c.loop("crossing_call_errno", MemorySegment.NULL, pointerTo(c.address("crossing_failing")));
        bench.measure(Pair.bare("downcall", "Calls", "downcall", Calls::plain, call));
        bench.measure(Pair.bare("downcall.critical", "Calls", "downcall, critical", Calls::critical, call));
        bench.measure(Pair.bare("downcall.errno", "Calls", "downcall, errno captured", Calls::withErrno, callErrno));
        bench.measure(Pair.bare("upcall", "Calls", "upcall from a loop of C",
                c.loop("crossing_call", MemorySegment.NULL, pointerTo(Calls.upcall())), call));
    }

    private static MemorySegment pointerTo(MemorySegment function) {
        MemorySegment pointer = Arena.global().allocate(ValueLayout.ADDRESS);
        pointer.set(ValueLayout.ADDRESS, 0, function);
        return pointer;
    }

    private static void accesses(Bench bench) {
        MemorySegment line = Arena.global().allocate(LineMemory.BYTES, LineMemory.BYTES);
        LineMemory.choose(line);
        Accesses.WAYS.forEach((way, title) -> add(way, title, Accesses.of(way, line), line, bench));
        try {
            add("chronicle", "Chronicle Bytes, PointerBytesStore, instance field", Accesses.chronicle(line), line,
                    bench);
        } catch (LinkageError e) {
            bench.note("Chronicle Bytes was left out: " + e);
        }
        add("descriptors", "Descriptors of org.millrace.abi, instance fields", Accesses.descriptors(), line, bench);
    }

    private static void add(String way, String group, Map<String, Loop> loops, MemorySegment line, Bench bench) {
        loops.forEach((access, loop) -> bench.measure(Pair.same(way + "." + access, group, TITLES.get(access), loop,
                bench.c().loop("access_" + access, line, MemorySegment.NULL))));
    }
}
