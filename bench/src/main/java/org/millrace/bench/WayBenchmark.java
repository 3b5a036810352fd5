package org.millrace.bench;

import java.lang.foreign.MemorySegment;
import org.millrace.bench.access.LineMemory;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.crossing.Accesses;
import org.millrace.bench.measure.Loop;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.Param;

/** The same word, reached in the ways that Java has, beside C's access. */
@OperationsPerInvocation(LoopBenchmark.LONG_BATCH)
public class WayBenchmark extends LoopBenchmark {

    /** Way and access, separated by a dot, as {@link Accesses#loop} names them. */
    @Param({"static.get_acquire", "static.set_release", "static.get_and_add", "local.get_acquire", "local.set_release",
            "local.get_and_add", "instance.get_acquire", "instance.set_release", "instance.get_and_add",
            "buffer.get_acquire", "buffer.set_release", "buffer.get_and_add", "array.get_acquire", "array.set_release",
            "array.get_and_add", "atomics.get_acquire", "atomics.set_release", "atomics.get_and_add",
            "chronicle.get_acquire", "chronicle.set_release", "chronicle.get_and_add", "chronicle.set_volatile",
            "descriptors.head_release", "descriptors.tail_acquire", "descriptors.size_acquire",
            "descriptors.size_plain"})
    public String access;

    @Override
    int batch() {
        return LONG_BATCH;
    }

    @Override
    Loop loop(CLibrary c) {
        MemorySegment line = LineMemory.allocate("native");
        if (access.startsWith("array")) {
            LineMemory.chooseArray();
        } else {
            LineMemory.choose(line);
        }
        String[] words = access.split("\\.");
        return c == null ? Accesses.loop(words[0], words[1], line)
                : c.loop("access_" + words[1], line, MemorySegment.NULL);
    }
}
