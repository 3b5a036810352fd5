package org.millrace.bench;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.gpu.FlagMemory;
import org.millrace.bench.gpu.FlagTimes;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Percentiles;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaRuntime;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Param;

/**
 * Time of each flag between a GPU and the host. One way lasts from before the kernel's store of {@code tail} until the
 * host saw it, with the GPU's clock set to the host's by the quickest round trips. Both times are corrected for
 * coordinated omission.
 */
public class GpuFlagLatencyBenchmark extends PairBenchmark {

    /** Round trips as the GPU sees them, or one way. */
    @Param({"roundtrip", "oneway"})
    public String flag;

    /** Whether tail is stored behind {@code __threadfence_system}. */
    @Param({"false", "true"})
    public boolean fence;

    private final long[] seen = new long[FlagMemory.SAMPLES];
    private FlagMemory memory;
    private MemorySegment seenByC;

    @Override
    Loop loop(CLibrary c) throws IOException {
        CudaDevice device = CudaRuntime.load().device(0);
        opened(device.makeCurrent());
        memory = new FlagMemory(device);
        seenByC = c == null ? null : Arena.global().allocate(ValueLayout.JAVA_LONG, FlagMemory.SAMPLES);
        return c == null ? memory.answeredByJava(fence, seen) : memory.answeredByC(fence, seenByC, c);
    }

    /**
     * Launches the kernel once.
     *
     * @param percentiles receives the times
     */
    @Benchmark
    public void steps(Percentiles percentiles) {
        run(seen.length);
        if (seenByC != null) {
            MemorySegment.copy(seenByC, ValueLayout.JAVA_LONG, 0, seen, 0, seen.length);
        }
        FlagTimes times = new FlagTimes();
        times.add(memory, seen);
        percentiles.record(flag.equals("oneway") ? times.oneWay() : times.roundTrips());
    }
}
