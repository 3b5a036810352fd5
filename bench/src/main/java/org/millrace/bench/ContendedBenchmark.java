package org.millrace.bench;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.bench.access.Access;
import org.millrace.bench.access.LineMemory;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.gpu.FlagMemory;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Partner;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.PinnedMemory;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.Param;

/**
 * Accesses while another core reads or writes a word of the same line, the next, or one two away. A thread of C makes
 * the other accesses, for Java and for C. Pinned memory is polled by a kernel on the GPU.
 */
@OperationsPerInvocation(LoopBenchmark.LONG_BATCH)
public class ContendedBenchmark extends LoopBenchmark {

    /** Kind of memory, also {@code mapped}. {@code pinned} memory is polled by a GPU. */
    @Param("native")
    public String memory;

    /** Accesses of the other thread. */
    @Param({"polled", "written"})
    public String other;

    /** Distance of the other thread's word, in bytes. */
    @Param({"0", "64", "128"})
    public int distance;

    /** Access of an operation. */
    @Param({"GET_ACQUIRE", "SET_RELEASE", "GET_AND_ADD", "DATA_RELEASE_POLL", "DATA_VOLATILE_POLL",
            "DATA_FULL_FENCE_POLL", "STORE_FENCE_LOAD"})
    public Access access;

    @Override
    int batch() {
        return LONG_BATCH;
    }

    @Override
    Loop loop(CLibrary c) throws IOException {
        MemorySegment line = memory.equals("pinned") ? polledByGpu() : contended();
        LineMemory.choose(line);
        return c == null ? access.loop() : c.loop(access.symbol(), line, MemorySegment.NULL);
    }

    private MemorySegment contended() {
        MemorySegment line = LineMemory.allocate(memory);
        MemorySegment stop = Arena.global().allocate(LineMemory.BYTES, LineMemory.BYTES);
        Partner partner = partner();
        partner.start(CLibrary.ofThisJvm()
                .loop(other.equals("written") ? "contend_writing" : "contend_reading", line.asSlice(distance), stop),
                1);
        opened(() -> {
            ValueLayout.JAVA_LONG.varHandle().setRelease(stop, 0L, 1L);
            partner.await();
        });
        return line;
    }

    private MemorySegment polledByGpu() throws IOException {
        if (!other.equals("polled")) {
            throw new IllegalStateException("a GPU only polls: -p other=polled");
        }
        CudaDevice device = CudaRuntime.load().device(0);
        opened(device.makeCurrent());
        PinnedMemory line = LineMemory.pinned(memory);
        PinnedMemory stop = LineMemory.pinned(memory);
        FlagMemory kernels = new FlagMemory(device);
        kernels.startPolling(line.device().asSlice(distance), stop);
        opened(() -> kernels.stopPolling(stop));
        return line.host();
    }
}
