package org.millrace.bench;

import java.util.concurrent.TimeUnit;
import org.millrace.bench.gpu.CopyLoops;
import org.millrace.bench.measure.Loop;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.CurrentDevice;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** Copies like GIN's, one at a time, from the call until the host sees the completion. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 3, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
@Warmup(iterations = 5, time = 200, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 10, time = 100, timeUnit = TimeUnit.MILLISECONDS)
public class GpuCopyBenchmark {

    /** Direction of a copy. */
    @Param
    public CopyLoops.Way way;

    /** Size of a copy. */
    @Param({"8", "1024", "8192"})
    public int bytes;

    /** Whether a kernel that stays on the GPU and takes commands from host memory copies, and not a copy engine. */
    @Param({"false", "true"})
    public boolean kernel;

    private CurrentDevice current;
    private Loop loop;

    /** Creates both copiers. */
    @Setup
    public void setUp() {
        CudaDevice device = CudaRuntime.load().device(0);
        current = device.makeCurrent();
        loop = new CopyLoops(device).of(way, bytes, kernel);
    }

    /**
     * Copies once.
     *
     * @return the copy's number
     */
    @Benchmark
    public long copy() {
        long copied = loop.run(1);
        if (copied == Loop.LOST) {
            throw new IllegalStateException("a copy was not made");
        }
        return copied;
    }

    /** Restores the thread's device. */
    @TearDown
    public void tearDown() {
        current.close();
    }
}
