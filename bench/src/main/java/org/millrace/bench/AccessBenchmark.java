package org.millrace.bench;

import java.lang.foreign.MemorySegment;
import org.millrace.bench.access.Access;
import org.millrace.bench.access.LineMemory;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Loop;
import org.millrace.cuda.CudaRuntime;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.Param;

/**
 * Access modes, fences, and the pairs of accesses in protocols, while no other thread uses the memory. The eight words
 * of a cache line take turns. The segment is a static final field, so the loop shows the access alone.
 */
@OperationsPerInvocation(LoopBenchmark.LONG_BATCH)
public class AccessBenchmark extends LoopBenchmark {

    /** Kind of memory. A machine with a GPU has {@code pinned} and {@code write-combined} memory, too. */
    @Param({"array", "native", "mapped"})
    public String memory;

    /** Access of an operation. */
    @Param
    public Access access;

    @Override
    int batch() {
        return LONG_BATCH;
    }

    @Override
    Loop loop(CLibrary c) {
        if (memory.equals("write-combined") && access.isLocked(c != null)) {
            throw new IllegalStateException("a locked access to uncached memory locks the bus for all cores");
        }
        if (memory.equals("pinned") || memory.equals("write-combined")) {
            opened(CudaRuntime.load().device(0).makeCurrent());
        }
        if (memory.equals("array") && c == null) {
            LineMemory.chooseArray();
            return access.loop();
        }
        MemorySegment line = LineMemory.allocate(memory.equals("array") ? "native" : memory);
        LineMemory.choose(line);
        return c == null ? access.loop() : c.loop(access.symbol(), line, MemorySegment.NULL);
    }
}
